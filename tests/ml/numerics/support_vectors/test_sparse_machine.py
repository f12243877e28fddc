"""Linear machines of sparse rows: the minimum of sequential minimal optimisation, and of liblinear's hinge loss."""

import numpy as np
import pytest
import scipy
from sklearn.svm import LinearSVC

from app.ml.contract.sparse_rows import SparseRows
from app.ml.numerics.kernel_functions.linear_kernel import Linear
from app.ml.numerics.support_vectors.kernel_rows import KernelRows
from app.ml.numerics.support_vectors.linear_machine import minimum
from app.ml.numerics.support_vectors.smo import Problem, Settings, solve
from tests.ml.numerics.support_vectors.same_minimum import same_minimum

SETTINGS = Settings(1e-5, 10.0, 10**7)


def drawn(seed, n=300, d=120, cost=None):
    """Rows with few numbers, some of them empty, of two classes that overlap."""
    rng = np.random.default_rng(seed)
    x = rng.poisson(0.05, (n, d)) * rng.exponential(size=d)
    z = np.where(x @ rng.normal(size=d) + rng.normal(size=n) > 0.3, 1.0, -1.0)
    costs = rng.choice([0.5, 1.0, 2.0], n) * 10.0 ** (seed % 4 - 2) if cost is None else np.full(n, cost)
    return x, Problem(z, np.minimum(costs * z, 0), np.maximum(costs * z, 0), np.zeros(n))


def rows_of(x):
    return KernelRows(Linear(), SparseRows(scipy.sparse.csr_array(x)))


@pytest.mark.parametrize("seed", range(8))
def test_the_minimum_is_that_of_sequential_minimal_optimisation(seed):
    x, problem = drawn(seed)
    settings = SETTINGS._replace(tol=1e-6)
    found = minimum(rows_of(x), problem, settings)
    other = solve(KernelRows(Linear(), x), problem, settings)
    same_minimum(found, other, problem, settings.tol)
    np.testing.assert_allclose(found.residual, problem.linear - x @ (x.T @ found.coef), atol=1e-12)


@pytest.mark.parametrize("cost", [0.1, 1.0, pytest.param(30.0, marks=pytest.mark.slow)])
def test_no_plane_of_liblinear_has_a_lower_objective(cost):
    x, problem = drawn(1, 600, cost=cost)
    z = problem.linear
    found = minimum(rows_of(x), problem, SETTINGS)

    def objective(weights, intercept):
        return weights @ weights / 2 + cost * np.maximum(0, 1 - z * (x @ weights + intercept)).sum()

    own = objective(x.T @ found.coef, found.intercept)
    peer = LinearSVC(C=cost, loss="hinge", tol=1e-6, max_iter=100_000, intercept_scaling=100.0).fit(x, z)
    assert own <= objective(peer.coef_[0], peer.intercept_[0]) * (1 + 1e-4)
    assert own == pytest.approx(-found.objective, rel=1e-4)


def test_rows_of_the_kernel_are_those_of_dense_rows():
    x, _ = drawn(0)
    sparse, dense, row = rows_of(x), KernelRows(Linear(), x), np.empty((2, len(x)))
    np.testing.assert_allclose(sparse.diagonal, dense.diagonal, rtol=1e-12)
    sparse.fill(7, row[0])
    dense.fill(7, row[1])
    np.testing.assert_allclose(*row, atol=1e-12)


def test_rows_without_numbers_leave_the_commoner_class():
    z = np.array([1.0, 1, 1, -1])
    problem = Problem(z, np.minimum(z, 0), np.maximum(z, 0), np.zeros(4))
    found = minimum(rows_of(np.zeros((4, 3))), problem, SETTINGS)
    assert found.converged
    assert found.intercept == pytest.approx(1.0)
    assert found.objective == pytest.approx(-2.0)  # one row of four is a whole 2 from its side


def test_too_few_passes_are_reported():
    x, problem = drawn(3)
    found = minimum(rows_of(x), problem, SETTINGS._replace(max_iter=2))
    assert (found.converged, found.iterations) == (False, 2)
    assert found.gap > SETTINGS.tol * abs(found.objective)
