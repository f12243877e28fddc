"""The perceptron against its theorems, a plain twin and scikit-learn."""

import numpy as np
import pytest
import scipy
from sklearn import datasets
from sklearn.linear_model import Perceptron as Peer

from app.base.errors import InvalidData
from app.ml.algorithms import perceptron
from app.ml.contract.algorithm import Context, Data, Task
from app.ml.contract.sparse_rows import SparseRows
from app.ml.numerics.linear_models.perceptron import perceptron_pass
from app.ml.numerics.linear_models.sparse_perceptron import sparse_perceptron_pass

ONCE = {"epochs": 1, "shuffle": False}


def of(x, y, **more):
    return Data.of(Task.CLASSIFICATION, x, y, **more)


def fitted(data, seed=0, **params):
    return perceptron.fit(perceptron.Perceptron(**params), data, Context.of(seed))


def twin(x, codes, weights, order, constant, coef, drift, rounds, counts):  # noqa: PLR0917 - as the kernel
    """The rule of the docstring, a row at a time in numpy."""
    mistakes = 0
    for turn, i in enumerate(order):
        row = np.append(x[i], constant)
        scores = coef @ row
        wrong = scores >= scores[codes[i]]
        wrong[codes[i]] = False
        if not wrong.any():
            continue
        step = np.where(wrong, -1 / max(wrong.sum(), 1), 0.0)
        step[codes[i]] = 1
        coef += weights[i] * step[:, None] * row
        drift += (rounds + turn) * weights[i] * step[:, None] * row
        mistakes += 1
        counts[i] += 1
    return mistakes


@pytest.mark.parametrize(("k", "seed"), [(1, 0), (2, 1), (2, 2), (3, 3), (7, 4)])
def test_the_kernel_does_what_its_twin_does(k, seed):
    rng = np.random.default_rng(seed)
    x, codes, weights = rng.integers(-4, 5, (80, 3)) / 4.0, rng.integers(0, k, 80), rng.choice([0.5, 1.0, 2.0], 80)
    order, start = rng.permutation(80), rng.integers(-2, 3, (2, k, 4)) / 8.0
    if k == 2:
        start[:, 0] = -start[:, 1]
    ours, theirs = ([*start.copy(), 10, np.zeros(80, np.intp)] for _ in range(2))
    found = [run(x, codes, weights, order, 1.0, *state) for run, state in ((perceptron_pass, ours), (twin, theirs))]
    assert found[0] == found[1]
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)


def test_two_points_meet_the_bound():
    """Points (1,1)+, (−1,−1)−: R = √2 and the margin √2 of the largest-margin plane allow one mistake."""
    state = fitted(of([[1.0, 1], [-1, -1]], [1, 0]), fit_intercept=False).state
    assert (state.mistakes, state.radius, state.bound) == (1, pytest.approx(np.sqrt(2)), pytest.approx(1))
    np.testing.assert_allclose(state.coef[1, :2] / np.linalg.norm(state.coef[1]), np.sqrt([0.5, 0.5]))


def separable(seed):
    rng = np.random.default_rng(seed)
    n, d = rng.integers(5, 60), rng.integers(1, 6)
    w, x = rng.normal(size=d), rng.normal(size=(n, d))
    x += np.sign(x @ w)[:, None] * w / np.linalg.norm(w) * rng.uniform(0.02, 0.5)
    return x, np.sign(x @ w), w


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_mistakes_on_separable_rows_keep_the_bound(first):
    """J4, U2: |M| ≤ (R/γ)² for the planted plane and for the one found, whatever the order."""
    for seed in range(first, first + 50):
        x, y, w = separable(seed)
        if np.ptp(y) == 0:
            continue
        fit = fitted(of(x, y > 0), seed, fit_intercept=False, epochs=10_000)
        margin = (y * (x @ w)).min() / np.linalg.norm(w)
        radius = np.linalg.norm(x, axis=1).max()
        assert fit.converged
        assert fit.state.radius == pytest.approx(radius, rel=1e-14)
        assert fit.state.mistakes <= (radius / margin) ** 2
        assert fit.state.mistakes <= fit.state.bound <= (fit.state.radius / fit.state.margin) ** 2 * (1 + 1e-12)
        assert fit.state.margin > 0


def test_the_claims_of_the_proof():
    """J4: a mistake raises w·w* by at least 1 and ‖w‖² by at most R²; after M of them w·w* ≥ M and ‖w‖ ≤ √M·R.

    (Printed as √(MR), which the last line shows to be wrong for R > 1.)
    """
    beyond_print = 0
    for seed in range(30):
        x, y, w = separable(seed)
        x = x * 20
        star = w / (y * (x @ w)).min()
        radius = np.linalg.norm(x, axis=1).max()
        params, state = perceptron.Perceptron(fit_intercept=False), None
        for turn in range(3 * len(x)):
            row = of(x[[turn % len(x)]], (y > 0)[[turn % len(x)]], classes=2)
            if state is None:
                fit = perceptron.fit(params, row, Context.of(0))
                old, new, made = np.zeros_like(w), fit.state.coef[1, :-1], 1
            else:
                fit = perceptron.update(params, state, row, Context.of(0))
                old, new, made = state.coef[1, :-1], fit.state.coef[1, :-1], fit.state.mistakes - state.mistakes
            if made:
                assert (new - old) @ star >= 1 - 1e-9
                assert new @ new - old @ old <= radius**2 * (1 + 1e-9)
            m = fit.state.mistakes
            assert new @ star >= m - 1e-9 * m
            assert np.linalg.norm(new) <= np.sqrt(m) * radius * (1 + 1e-9)
            beyond_print += np.linalg.norm(new) > np.sqrt(m * radius)
            state = fit.state
    assert beyond_print > 0


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_mistakes_on_noisy_rows_keep_the_general_bound(first):
    """U2: |M| ≤ F + R‖w*‖√F + R²‖w*‖² for any w*, F the hinge loss on the rounds in M only."""
    for seed in range(first, first + 50):
        rng = np.random.default_rng(seed)
        n, d = rng.integers(5, 40), rng.integers(1, 5)
        x, y = rng.normal(size=(n, d)), rng.choice([-1.0, 1.0], n)
        counts, coef = np.zeros(n, np.intp), np.zeros((2, d + 1))
        codes, drift = (y > 0).astype(np.intp), np.zeros((2, d + 1))
        mistakes = perceptron_pass(x, codes, np.ones(n), np.arange(n), 0.0, coef, drift, 0, counts)
        radius = np.linalg.norm(x, axis=1).max()
        for _ in range(20):
            star = rng.normal(size=d) * rng.choice([0.1, 1, 10])
            hinge, reach = counts @ np.maximum(0, 1 - y * (x @ star)), radius * np.linalg.norm(star)
            assert mistakes <= hinge + reach * np.sqrt(hinge) + reach**2
        state = fitted(of(x, y > 0, classes=2), epochs=20).state
        assert np.isnan(state.bound) or state.mistakes <= state.bound


@pytest.mark.parametrize("name", ["iris", "wine", "digits"])
def test_the_bound_for_many_classes(name):
    x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    x = (x - x.mean(axis=0)) / np.where(x.std(axis=0) > 0, x.std(axis=0), 1)
    fit = fitted(of(x, y))
    predicted = perceptron.predict(perceptron.Perceptron(), fit.state, x)
    assert fit.state.mistakes <= fit.state.bound
    assert fit.converged
    assert (fit.state.margin > 0) == (name != "iris")
    if fit.state.margin > 0:
        np.testing.assert_array_equal(predicted.argmax(axis=1), y)
        assert fit.state.mistakes <= (fit.state.radius / fit.state.margin) ** 2
    else:
        assert fit.warnings
        assert (predicted.argmax(axis=1) == y).mean() > 0.9


def test_it_is_gradient_descent_on_the_hinge_of_its_mistakes():
    """U1: the same as w ← w − ∂f with f = max(0, 1 − y w·x) on the rounds of mistakes and 0 else."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(100, 4)), rng.choice([-1.0, 1.0], 100)
    w = np.zeros(4)
    for row, sign in zip(x, y, strict=True):
        if sign * (w @ row) <= 0:
            w -= -sign * row  # the slope of the hinge, which is at least 1 here
    state = fitted(of(x, y > 0), **ONCE, fit_intercept=False).state
    np.testing.assert_allclose(state.coef[1, :-1], w, rtol=1e-12)
    np.testing.assert_array_equal(state.coef[0], -state.coef[1])


@pytest.mark.parametrize("epochs", [1, 3])
def test_scikit_learn_walks_the_same_way(epochs):
    x, y = datasets.load_breast_cancer(return_X_y=True)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    peer = Peer(max_iter=epochs, tol=None, shuffle=False).fit(x, y)
    state = fitted(of(x, y), epochs=epochs, shuffle=False).state
    np.testing.assert_allclose(state.coef[1, :-1], peer.coef_[0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(state.coef[1, -1], peer.intercept_[0], rtol=1e-9)


@pytest.mark.parametrize("seed", range(50))
def test_drawn_problems_as_scikit_learn(seed):
    """Constant, double and dependent columns, twins of other classes, fewer rows than columns among them."""
    rng = np.random.default_rng(seed)
    n, d, epochs = rng.integers(4, 60), rng.integers(1, 9), int(rng.integers(1, 6))
    x = rng.integers(-9, 10, (n, d)).astype(float)  # sums of whole numbers are exact: a score of zero is one
    x[:, rng.integers(0, d)] = 2.0
    x[:, rng.integers(0, d)] = x[:, 0]
    x[1] = x[0]
    y = np.arange(n) % 2
    peer = Peer(max_iter=epochs, tol=None, shuffle=False).fit(x, y)
    state = fitted(of(x, y), epochs=epochs, shuffle=False).state
    np.testing.assert_array_equal(state.coef, np.outer([-1, 1], [*peer.coef_[0], peer.intercept_[0]]))


def test_the_average_is_over_all_rounds():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(50, 3)), rng.integers(0, 3, 50)
    data = of(x, y, classes=3)
    params = perceptron.Perceptron(**ONCE, average="always")
    state = perceptron.fit(params, data.take(np.array([0])), Context.of(0)).state
    seen = [state.coef]
    for i in range(1, 50):
        state = perceptron.update(params, state, data.take(np.array([i])), Context.of(0)).state
        seen.append(state.coef)
    result = perceptron.summary(params, state)
    average = np.mean(seen, axis=0)
    assert result["averaged"]
    np.testing.assert_allclose(result["coefficients"], average[:, :-1], rtol=1e-12, atol=1e-14)


def test_a_batch_more_is_the_longer_pass():
    """fit(A), update(B) = fit(A and B), to the last bit."""
    rng = np.random.default_rng(4)
    data = of(rng.normal(size=(90, 3)), rng.integers(0, 3, 90), classes=3)
    params = perceptron.Perceptron(**ONCE)
    first = perceptron.fit(params, data.take(np.arange(40)), Context.of(0)).state
    both = perceptron.update(params, first, data.take(np.arange(40, 90)), Context.of(9)).state
    whole = perceptron.fit(params, data, Context.of(0)).state
    assert both.coef.tobytes() == whole.coef.tobytes()
    assert both.drift.tobytes() == whole.drift.tobytes()
    assert (both.rounds, both.mistakes, both.radius) == (whole.rounds, whole.mistakes, whole.radius)
    assert np.isnan(both.margin)  # nobody has looked at the rows of A again


def test_xor_ends_and_says_so():
    """B4.4: no plane parts XOR; with the product as an input one does."""
    x, y = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]]), [0, 1, 1, 0]
    fit = fitted(of(x, y), epochs=50)
    assert (fit.converged, fit.iterations) == (True, 50), "the average of so many passes is the prediction"
    assert not fitted(of(x, y), epochs=50, average="never").converged
    assert "No plane" in fit.warnings[0]
    assert fit.state.margin < 0
    parted = fitted(of(np.column_stack([x, x[:, 0] * x[:, 1]]), y))
    assert parted.converged
    assert parted.state.mistakes <= parted.state.bound


def test_the_error_curve_is_reported():
    seen = []
    data = of(*datasets.load_iris(return_X_y=True))
    context = Context.of(0, lambda _, **measures: seen.append(measures["error_rate"]))
    fit = perceptron.fit(perceptron.Perceptron(epochs=7), data, context)
    assert seen == fit.curves["error_rate"]
    assert len(seen) == 7
    assert sum(seen) * 150 == pytest.approx(fit.state.mistakes)


def test_numbers_that_cannot_be_multiplied_are_refused():
    with pytest.raises(InvalidData, match="scale them"):
        fitted(of([[1e200], [-1e200]], [0, 1]))


def test_the_share_is_the_depth():
    """(1 ± s)/2 with s = y w·x/(‖w‖R): ½ on the boundary, 1 for the longest row along w."""
    state = fitted(of([[3.0, 0.0], [-1.0, 0.0]], [1, 0]), fit_intercept=False, cv=None).state
    predicted = perceptron.predict(perceptron.Perceptron(), state, np.array([[3.0, 0], [0, 5], [1.5, 0], [-1, 0]]))
    np.testing.assert_allclose(predicted[:, 1], [1, 0.5, 0.75, 1 / 3])


@pytest.mark.parametrize("classes", [2, 3])
def test_sparse_rows_are_corrected_as_an_array(classes):
    """Whole numbers: both sums are exact, so that every round is the same."""
    rng = np.random.default_rng(classes)
    x = rng.integers(-3, 4, (60, 9)) * (rng.random((60, 9)) < 0.3) * 1.0
    codes, weights, order = rng.integers(0, classes, 60), 2.0 ** rng.integers(-1, 2, 60), rng.permutation(60)
    found = []
    for passes, rows in ((perceptron_pass, x), (sparse_perceptron_pass, SparseRows(scipy.sparse.csr_array(x)))):
        coef, drift, counts = np.zeros((classes, 10)), np.zeros((classes, 10)), np.zeros(60, np.intp)
        mistakes = passes(rows, codes, weights, order, 1.0, coef, drift, 5, counts)
        found.append((mistakes, coef, drift, counts))
    assert found[0][0] == found[1][0] > 0
    for dense, few in zip(found[0][1:], found[1][1:], strict=True):
        np.testing.assert_allclose(few, dense, rtol=1e-12, atol=1e-12)
