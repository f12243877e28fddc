"""Compiled kernels: the values of the plain ones, with bits that do not depend on other rows."""

import numpy as np
import pytest

from app.ml.numerics.kernel_functions.anova_kernel import Anova
from app.ml.numerics.kernel_functions.linear_kernel import Linear
from app.ml.numerics.kernel_functions.polynomial_kernel import Polynomial
from app.ml.numerics.kernel_functions.rbf_kernel import Rbf
from app.ml.numerics.kernel_functions.sigmoid_kernel import Sigmoid
from app.ml.numerics.support_vectors.kernel_rows import KernelRows, kernel_matrix, weighted_sums

KERNELS = [
    Linear(),
    Polynomial(0.5, 3, 1.0),
    Polynomial(2.0, 1, 0.0),
    Rbf(np.array([0.3])),
    Sigmoid(0.1, -0.2),
    Anova(0.4, 2),
]
RNG = np.random.default_rng(0)
ROWS, OTHERS = RNG.normal(size=(1100, 6)), RNG.normal(size=(7, 6))


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
@pytest.mark.parametrize("columns", [1, 4, 6])
def test_the_compiled_kernel_does_what_its_twin_does(kernel, columns):
    rows, others = np.ascontiguousarray(ROWS[:, :columns]), np.ascontiguousarray(OTHERS[:, :columns])
    found = kernel_matrix(kernel, others, np.ascontiguousarray(rows.T))
    np.testing.assert_allclose(found, kernel.matrix(others, rows), rtol=1e-11, atol=1e-13)
    own = KernelRows(kernel, rows)
    row = np.empty(len(rows))
    own.fill(5, row)
    np.testing.assert_allclose(row[5], own.diagonal[5], rtol=1e-13)
    alone = kernel_matrix(kernel, others[3:4], np.ascontiguousarray(rows[600:601].T))
    assert alone[0, 0] == found[3, 600]
    coef = RNG.normal(size=(2, len(rows)))
    sums = weighted_sums(kernel, others, np.ascontiguousarray(rows.T), coef)
    np.testing.assert_allclose(sums, found @ coef.T, rtol=1e-9, atol=1e-9)
    assert (weighted_sums(kernel, others[2:3], np.ascontiguousarray(rows.T), coef) == sums[2:3]).all()


def test_exponentials_far_from_one():
    x = np.array([[0.0]])
    far = np.array([[0.0, 1e-9, 1.0, 5.0, 20.0, 26.0, 30.0, 1e6]])
    found = kernel_matrix(Rbf(np.array([1.0])), x, far)[0]
    np.testing.assert_allclose(found, np.exp(-(far[0] ** 2)), rtol=3e-13, atol=1e-300)
    assert found[0] == 1.0


def test_a_given_square_has_the_rows_of_the_points():
    points = KernelRows(KERNELS[3], np.ascontiguousarray(ROWS[:50]))
    square = KernelRows.given(points.kernel.matrix(points.rows, points.rows))
    some = np.array([3, 4, 10, 30])
    rows = [np.empty(4), np.empty(4)]
    for one, found in zip((points, square), rows, strict=True):
        one.take(some).fill(2, found)
    np.testing.assert_allclose(*rows, rtol=1e-12)
    left, coef = np.arange(9), np.array([1.0, -2.0, 0.5, 3.0])
    np.testing.assert_allclose(square.products(left, some, coef), points.products(left, some, coef), rtol=1e-12)
