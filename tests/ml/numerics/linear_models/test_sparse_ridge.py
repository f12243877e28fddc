"""Ridge of sparse rows: the solution of the normal equations of dense ones, and of scikit-learn."""

import numpy as np
import pytest
import scipy
from sklearn.linear_model import Ridge

from app.ml.contract.sparse_rows import SparseRows
from app.ml.numerics.linear_models.sparse_ridge import sparse_ridge


def drawn(n, d, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.poisson(0.1, (n, d)) * rng.exponential(size=d)
    return x, rng.normal(size=(n, 2)) + x[:, :2], rng.uniform(0.5, 2, n)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("n", "d"), [(200, 30), (60, 150)])
@pytest.mark.parametrize("penalty", [1e-3, 1.0, 100.0])
def test_the_coefficients_are_those_of_dense_rows(intercept, n, d, penalty):
    x, targets, weights = drawn(n, d)
    found = sparse_ridge(SparseRows(scipy.sparse.csr_array(x)), targets, weights, penalty, intercept=intercept)
    peer = Ridge(alpha=penalty, fit_intercept=intercept, solver="cholesky").fit(x, targets, weights)
    assert found.converged
    np.testing.assert_allclose(found.coef, peer.coef_.T, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.intercept, peer.intercept_, rtol=1e-6, atol=1e-8)


def test_columns_and_targets_without_spread_have_no_coefficients():
    x = np.zeros((5, 3))
    x[:, 1] = 2.0
    found = sparse_ridge(SparseRows(scipy.sparse.csr_array(x)), np.full((5, 1), 7.0), np.ones(5), 1.0, intercept=True)
    np.testing.assert_array_equal(found.coef, 0)
    np.testing.assert_allclose(found.intercept, 7.0)


def test_too_few_iterations_are_reported():
    x, targets, weights = drawn(60, 150)
    rows = SparseRows(scipy.sparse.csr_array(x))
    found = sparse_ridge(rows, targets, weights, 1e-6, intercept=True, max_iter=3)
    assert (found.converged, found.iterations) == (False, 6)
