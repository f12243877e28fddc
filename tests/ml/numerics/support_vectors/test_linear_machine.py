"""Linear machines of many rows: the minimum of sequential minimal optimisation, and a closed gap."""

import numpy as np
import pytest

from app.ml.numerics.kernel_functions.linear_kernel import Linear
from app.ml.numerics.support_vectors import linear_machine
from app.ml.numerics.support_vectors.kernel_rows import KernelRows
from app.ml.numerics.support_vectors.linear_machine import solve_linear
from app.ml.numerics.support_vectors.smo import Problem, Settings, balanced, solve
from tests.ml.numerics.support_vectors.same_minimum import same_minimum


def drawn(kind, seed, n=400, noise=1.0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4)) * [1, 3, 0.2, 1]
    x[:, 3] = x[:, 0] - x[:, 1] if seed % 2 else 5.0
    costs = rng.choice([0.5, 1.0, 2.0], n) * rng.choice([0.01, 1.0])
    if kind == "numbers":
        z = x[:, 0] + noise * rng.standard_t(3, n)
        return x, Problem(z, -costs, costs, np.zeros(n), 0.3)
    z = np.where(x[:, 0] + noise * rng.normal(size=n) > 0.5, 1.0, -1.0)
    return x, Problem(z, np.minimum(costs * z, 0), np.maximum(costs * z, 0), np.zeros(n))


@pytest.mark.parametrize("kind", ["classes", "numbers"])
@pytest.mark.parametrize("seed", range(6))
def test_the_minimum_is_that_of_sequential_minimal_optimisation(kind, seed):
    x, problem = drawn(kind, seed)
    settings = Settings(1e-5, 10.0, 10**7)
    found = solve_linear(x, problem, settings)
    other = solve(KernelRows(Linear(), x), problem, settings)
    same_minimum(found, other, problem, settings.tol)
    assert abs(found.coef.sum()) <= 1e-6 * problem.upper.sum()


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_a_start_from_some_rows_leads_to_the_same_minimum(kind, monkeypatch):
    x, problem = drawn(kind, 1, 3000)
    settings = Settings(1e-5, 10.0, 10**7)
    plain = solve_linear(x, problem, settings)
    monkeypatch.setattr(linear_machine, "MIN_SUBSET_ROWS", 100)
    assert solve_linear(x, problem, settings).objective == pytest.approx(plain.objective, rel=1e-6)


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_a_first_plane_far_from_that_of_all_rows_is_given_up(kind, monkeypatch):
    """Coefficients kept from the plane of a few rows may leave no β of sum 0."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1500, 30))
    z = x @ rng.normal(size=30) / 4 + rng.normal(size=len(x))
    problem = Problem(z, -np.ones(len(x)), np.ones(len(x)), np.zeros(len(x)), 0.3)
    if kind == "classes":
        z = np.where(z > 0.5, 1.0, -1.0)
        problem = Problem(z, np.minimum(z, 0), np.maximum(z, 0), np.zeros(len(x)))
    settings = Settings(1e-4, 10.0, 10**7)
    plain = solve_linear(x, problem, settings)
    for name, value in {
        "MIN_SUBSET_ROWS": 50,
        "MIN_ROWS_PER_COLUMN": 1,
        "MIN_NEAR_SHARE": 0.02,
        "NEAR_SHARE_FACTOR": 0.02,
    }.items():
        monkeypatch.setattr(linear_machine, name, value)
    found = solve_linear(x, problem, settings)
    assert found.converged
    assert found.objective == pytest.approx(plain.objective, rel=1e-4)
    assert abs(found.coef.sum()) <= 1e-6 * problem.upper.sum()


def test_a_solution_whose_coefficients_do_not_add_up_is_none():
    x, problem = drawn("classes", 0)
    found = solve_linear(x, problem, Settings(1e-5, 10.0, 10**7))
    assert balanced(problem, found, 1e-5)
    assert not balanced(problem, found._replace(coef=found.coef + 1.0), 1e-5)


def test_classes_that_a_plane_separates():
    x, problem = drawn("classes", 2, 300, noise=0.0)
    found = solve_linear(x, problem, Settings(1e-5, 10.0, 10**7))
    assert found.converged
    assert found.gap <= 1e-5 * abs(found.objective)


def test_unusual_units():
    x, problem = drawn("classes", 0, 300)
    for unit in (2.0**60, 2.0**-60):
        costs = problem._replace(lower=problem.lower / unit**2, upper=problem.upper / unit**2)
        found = solve_linear(x * unit, costs, Settings(1e-4, 10.0, 10**7))
        assert np.isfinite(found.residual).all()
        assert found.converged
