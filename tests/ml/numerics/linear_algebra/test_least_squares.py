"""The covariance factor against pseudo-inverses."""

import numpy as np
import pytest

from app.ml.numerics.linear_algebra.least_squares import least_squares
from app.ml.numerics.linear_algebra.solve import covariance_factor


@pytest.mark.parametrize(("n", "d", "rank"), [(30, 5, 5), (30, 5, 3), (6, 10, 6), (6, 10, 2), (1, 3, 1), (4, 1, 0)])
def test_covariance_is_the_pseudo_inverse_of_the_gram_matrix(n, d, rank):
    rng = np.random.default_rng(n + d + rank)
    a = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d))
    factor = covariance_factor(a)
    assert factor.shape == (d, rank)
    inverse = np.linalg.pinv(a, rcond=1e-12)
    np.testing.assert_allclose(factor @ factor.T, inverse @ inverse.T, rtol=1e-8, atol=1e-10)


def test_digits_survive_bad_conditioning():
    """Singular values 1 and 1e-7: the product aᵀa knows the smaller one to two digits only."""
    rng = np.random.default_rng(0)
    (u, _), (v, _) = np.linalg.qr(rng.normal(size=(20, 2))), np.linalg.qr(rng.normal(size=(2, 2)))
    factor = covariance_factor((u * [1, 1e-7]) @ v.T)
    np.testing.assert_allclose(np.linalg.norm(factor), 1e7, rtol=1e-7)


@pytest.mark.parametrize("intercept", [True, False])
def test_agrees_with_the_plain_system(intercept):
    rng = np.random.default_rng(3)
    x, y, weights = rng.normal(size=(25, 3)) + 2, rng.normal(size=(25, 2)), rng.uniform(0.2, 3, 25)
    rows = np.column_stack([x, np.ones(25)]) if intercept else x
    root = np.sqrt(weights)[:, None]
    beta, square, *_ = np.linalg.lstsq(rows * root, y * root, rcond=None)
    found, factor = least_squares(x, y, weights, intercept)
    np.testing.assert_allclose(found.coef, beta[:3], rtol=1e-11)
    np.testing.assert_allclose(found.intercept, beta[3] if intercept else [0, 0], rtol=1e-11)
    np.testing.assert_allclose(found.square, square, rtol=1e-11)
    assert factor.flags.c_contiguous  # as it comes back from storage
