"""Sequential minimal optimisation: conditions of the minimum, the duality gap, and the objective of libsvm."""

import numpy as np
import pytest
from sklearn.svm import SVC, SVR, OneClassSVM

from app.ml.numerics.kernel_functions.linear_kernel import Linear
from app.ml.numerics.kernel_functions.rbf_kernel import Rbf
from app.ml.numerics.support_vectors import smo
from app.ml.numerics.support_vectors.compiled.pair_steps import OPTIMAL, all_flags, pair_steps
from app.ml.numerics.support_vectors.kernel_rows import KernelRows
from app.ml.numerics.support_vectors.row_cache import RowCache
from app.ml.numerics.support_vectors.smo import Problem, Settings, intercept, solve

TIGHT = Settings(1e-8, 10.0, 10**7)


def drawn(seed, kind, n=None):
    rng = np.random.default_rng(seed)
    n, d = n or int(rng.integers(8, 120)), int(rng.integers(1, 6))
    x = rng.normal(size=(n, d))
    cost = float(rng.choice([0.1, 1.0, 30.0]))
    costs = cost * rng.choice([0.5, 1.0, 2.0], n)
    if kind == "classes":
        z = np.where(x[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0)
        z[:2] = 1, -1
        return x, cost, costs, Problem(z, np.minimum(costs * z, 0), np.maximum(costs * z, 0), np.zeros(n))
    if kind == "numbers":
        z = np.sin(2 * x[:, 0]) + 0.3 * rng.normal(size=n)
        return x, cost, costs, Problem(z, -costs, costs, np.zeros(n), 0.1)
    total = 0.3 * n
    start = np.clip(total - np.arange(n), 0, 1)
    return x, 1.0, np.ones(n), Problem(np.zeros(n), np.zeros(n), np.ones(n), start)


def value(square, problem, coef):
    return 0.5 * coef @ square @ coef - problem.linear @ coef + problem.epsilon * np.abs(coef).sum()


@pytest.mark.parametrize("kind", ["classes", "numbers", "density"])
@pytest.mark.parametrize("seed", range(12))
def test_conditions_of_the_minimum_and_the_objective_of_libsvm(kind, seed):
    """Karush, Kuhn and Tucker; S7: the gap is zero; S12: the objective is that of a quadratic programme."""
    x, cost, costs, problem = drawn(seed, kind)
    kernel, n = Rbf(np.array([0.7])), len(x)
    square = kernel.matrix(x, x)
    found = solve(KernelRows(kernel, x), problem, TIGHT)
    assert found.converged
    coef, b = found.coef, found.intercept
    assert (coef >= problem.lower).all()
    assert (coef <= problem.upper).all()
    assert coef.sum() == pytest.approx(problem.start.sum(), abs=1e-9 * cost * n)
    residual = problem.linear - square @ coef
    np.testing.assert_allclose(found.residual, residual, atol=1e-9 * cost * n)
    away, eps = residual - b, problem.epsilon
    inner = (coef > problem.lower) & (coef < problem.upper) & (coef != 0)
    np.testing.assert_allclose(away[inner], eps * np.sign(coef[inner]), atol=1e-7)
    assert (away[coef >= problem.upper] >= eps - 1e-7).all()
    assert (away[(coef == 0) & (problem.upper > 0)] <= eps + 1e-7).all()
    if kind == "numbers":
        assert (np.abs(away[coef == 0]) <= eps + 1e-7).all()
    assert found.objective == pytest.approx(value(square, problem, coef), rel=1e-9)
    assert 0 <= found.gap <= 1e-6 * abs(found.objective)
    if kind == "classes":
        theirs = SVC(C=cost, gamma=0.7, tol=1e-8).fit(x, problem.linear, sample_weight=costs / cost)
    elif kind == "numbers":
        theirs = SVR(C=cost, gamma=0.7, tol=1e-8, epsilon=eps).fit(x, problem.linear, sample_weight=costs / cost)
    else:
        theirs = OneClassSVM(nu=0.3, gamma=0.7, tol=1e-8).fit(x)
    other = np.zeros(n)
    other[theirs.support_] = theirs.dual_coef_[0]
    assert found.objective == pytest.approx(value(square, problem, other), rel=1e-6)


@pytest.mark.parametrize("kind", ["classes", "numbers", "density"])
def test_a_small_cache_and_shrinking_change_nothing(kind, monkeypatch):
    x, _, _, problem = drawn(3, kind, 600)
    rows = KernelRows(Rbf(np.array([0.7])), x)
    plain = solve(rows, problem, Settings(1e-9, 100.0, 10**7))
    monkeypatch.setattr(smo, "PERIOD", 50)
    often = solve(rows, problem, Settings(1e-9, 0.01, 10**7))  # two rows
    given = solve(KernelRows.given(rows.kernel.matrix(x, x)), problem, Settings(1e-9, 1.0, 10**7))
    for other in (often, given):
        assert other.objective == pytest.approx(plain.objective, rel=1e-9)
        np.testing.assert_allclose(other.residual, plain.residual, atol=1e-6)


def twin_step(square, problem, residual, coef, tiny):
    """One step as the docstring of the module has it, with plain arrays; the violation before it."""
    up, low = np.empty((2, coef.size))
    flags(problem, coef, up, low)
    rise, fall = residual + up, residual + low
    i = int(rise.argmax())
    violation = rise[i] - fall.min()
    slope = np.maximum(rise[i] - fall, 0)
    own = square.diagonal()
    gains = slope**2 / np.maximum(own[i] + own - 2 * square[i], tiny)
    j = int(gains.argmax())
    step = slope[j] / max(own[i] + own[j] - 2 * square[i, j], tiny)
    high = problem.upper[i] if coef[i] >= 0 else 0.0
    least = problem.lower[j] if coef[j] <= 0 else 0.0
    step = min(step, high - coef[i], coef[j] - least)
    coef[i] += step
    coef[j] -= step
    residual -= step * (square[i] - square[j])
    return violation


def flags(problem, coef, up, low):
    """Plain numpy of `all_flags`."""
    eps = problem.epsilon
    up[:] = np.where(coef >= problem.upper, -np.inf, np.where(coef >= 0, -eps, eps))
    low[:] = np.where(coef <= problem.lower, np.inf, np.where(coef > 0, -eps, eps))


@pytest.mark.parametrize("kind", ["classes", "numbers", "density"])
def test_compiled_steps_do_what_their_twin_does(kind):
    """And the dual objective never rises (S12)."""
    x, _, _, problem = drawn(7, kind, 150)
    kernel = Rbf(np.array([0.7]))
    square = kernel.matrix(x, x)
    cache = RowCache(KernelRows.given(square), 150, 10.0)
    for place in range(150):
        cache.add(place)
    state = [problem.linear - square @ problem.start, problem.start.copy()]
    ours = [part.copy() for part in state]
    up, low = np.empty((2, 150))
    counts, edges, values = np.zeros(3, np.intp), np.zeros(2), []
    for turn in range(1, 60):
        all_flags(ours[1], problem.lower, problem.upper, problem.epsilon, up, low)
        bounds = problem.lower, problem.upper, up, low, square.diagonal().copy(), problem.epsilon
        held = cache.values, cache.slots, cache.used, 1e-3, 1e-12
        status = pair_steps(*ours, *bounds, *held, turn, counts, edges)
        if status == OPTIMAL:
            break
        twin_step(square, problem, *state, 1e-12)
        for one, other in zip(ours, state, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-10)
        values.append(value(square, problem, ours[1]))
    assert len(values) > 20
    assert (np.diff(values) <= 1e-12).all()


def test_rows_in_excess_of_the_cache_make_room_in_turn():
    x = np.random.default_rng(0).normal(size=(10, 2))
    rows = KernelRows(Linear(), x)
    cache = RowCache(rows, 10, 3 * 80 / 2**20)
    for tick, place in enumerate([4, 7, 2, 9]):
        cache.add(place)
        cache.used[cache.slots[place]] = tick + 1
    assert np.flatnonzero(cache.slots >= 0).tolist() == [2, 7, 9]
    cache.narrow(rows.take(np.array([2, 5, 9])), np.array([2, 5, 9]))
    assert np.flatnonzero(cache.slots >= 0).tolist() == [0, 2]
    start = cache.slots[2] * 3
    np.testing.assert_allclose(cache.values[start : start + 3], x[9] @ x[[2, 5, 9]].T)


def test_the_intercept_without_free_coefficients_is_in_the_middle():
    problem = Problem(np.array([1.0, -1.0]), np.array([0.0, -0.1]), np.array([0.1, 0.0]), np.zeros(2))
    assert intercept(problem, np.array([0.1, -0.1]), np.array([0.9, -0.7])) == pytest.approx(0.1)


def test_the_steps_end_at_max_iter():
    x, _, _, problem = drawn(5, "classes", 200)
    found = solve(KernelRows(Linear(), x), problem, Settings(1e-8, 10.0, 20))
    assert not found.converged
    assert found.iterations == 20
    assert found.gap > 0
