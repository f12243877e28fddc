"""Compiled kernels of distances against the same in numpy."""

import numpy as np
import pytest

from app.ml.numerics.kernel_functions.compiled.radial import MAX_EXPONENT, RBF, radial_slopes, radial_values

RNG = np.random.default_rng(0)
SQUARES = np.append(RNG.uniform(0, 3, (5, 1299)), np.zeros((5, 1)), axis=1)


def terms(order):
    """s, and the values of the kernel."""
    s = SQUARES if order == RBF else np.sqrt(order * SQUARES)
    return s, np.exp(-s) * (1 + s * (order > 1) + s * s / 3 * (order == 5))


@pytest.mark.parametrize("order", [RBF, 1, 3, 5])
def test_values_are_those_of_their_definition(order):
    values = SQUARES.copy()
    radial_values(values, order)
    np.testing.assert_allclose(values, terms(order)[1], rtol=1e-14)
    assert (values[:, -1] == 1).all()


@pytest.mark.parametrize("order", [RBF, 1, 3, 5])
def test_slopes_and_the_sum(order):
    s, values = terms(order)
    slopes = np.exp(-s) * {RBF: 1.0, 1: 1 / np.where(s > 0, s, 1), 3: 3.0, 5: 5 / 3 * (1 + s)}[order]
    weights, found = RNG.normal(size=SQUARES.shape), SQUARES.copy()
    total = radial_slopes(found, weights, order)
    np.testing.assert_allclose(found, weights * slopes, rtol=1e-13)
    np.testing.assert_allclose(total, np.vdot(weights, values), rtol=1e-11)


def test_far_rows_have_no_covariance():
    values = np.array([[MAX_EXPONENT - 1, MAX_EXPONENT + 1, 1e300]])
    radial_values(values, RBF)
    assert values[0, 0] > 0
    assert values[0, 1:].tolist() == [0, 0]
