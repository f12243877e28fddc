"""Ridge against published numbers, identities and scikit-learn."""

import csv
from pathlib import Path

import numpy as np
import pytest
from sklearn import datasets
from sklearn.linear_model import Ridge as Peer

from app.ml.algorithms import ridge
from app.ml.contract.algorithm import Context, Data, Task

NIST = Path(__file__).parents[1] / "data" / "nist"
CORNERS = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])
XOR = np.array([0.0, 1, 1, 0])


def fitted(x, y, l2=1.0, task=Task.REGRESSION, **more):
    data = Data.of(task, x, y, **more)
    return ridge.fit(ridge.Ridge(l2=l2), data, Context.of(0))


def nist(name):
    table, certified = (
        list(csv.reader((NIST / file).read_text().splitlines()))[1:]
        for file in (f"{name}.csv", f"{name}.certified.csv")
    )
    rows = np.array(table, float)
    return rows[:, 1:], rows[:, 0], np.array([float(row[1]) for row in certified if row[0].startswith("b")])


@pytest.mark.parametrize(
    ("name", "degree", "digits"),
    [
        ("norris", 1, 12),
        ("longley", 0, 12),
        ("wampler1", 5, 9.5),
        ("wampler2", 5, 12.5),
        ("wampler3", 5, 9),
        ("wampler5", 5, 6),
    ],
)
def test_certified_coefficients(name, degree, digits):
    """NIST StRD, linear regression: significant digits in common with the certified values."""
    x, y, certified = nist(name)
    state = fitted(np.hstack([x**power for power in range(1, degree + 1)]) if degree else x, y, l2=0).state
    error = np.abs(np.append(state.intercept, state.coef) / certified - 1)
    assert -np.log10(error.max() + 1e-16) > digits


def test_shrinks_an_orthonormal_design_by_one_over_one_plus_penalty():
    """B4.9: least squares (3, 0.4), penalty 1, gives (1.5, 0.2)."""
    x = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]]) / 2  # orthonormal, centred
    y = x @ [3, 0.4]
    np.testing.assert_allclose(fitted(x, y, l2=0).state.coef, [3, 0.4], rtol=1e-14)
    np.testing.assert_allclose(fitted(x, y, l2=1).state.coef, [1.5, 0.2], rtol=1e-14)


def test_a_collinear_pair_shares_its_coefficient():
    """B4.9: x2 = x1 + 1e-9 noise, y = 2x1, penalty 1e-3: (0.99973, 0.99973)."""
    x1 = np.array([-1.0, 0, 1]) * np.sqrt(1.85 / 2)  # Σx² = 1.85 gives the published shrinkage
    x = np.column_stack([x1, x1 + 1e-9 * np.array([1, -2, 1])])
    fit = fitted(x, 2 * x1, l2=1e-3)
    np.testing.assert_allclose(fit.state.coef, [0.99973, 0.99973], atol=5e-6)
    assert fit.warnings == ()
    assert "nearly dependent" in fitted(x, 2 * x1, l2=0).warnings[0]


def test_xor_is_beyond_a_plane():
    """B4.4: least squares on ±1 finds nothing at all."""
    fit = fitted(CORNERS, XOR, l2=0, task=Task.CLASSIFICATION)
    np.testing.assert_allclose(fit.state.coef, 0, atol=1e-15)
    np.testing.assert_allclose(ridge.predict(ridge.Ridge(), fit.state, CORNERS), 0.5)


@pytest.mark.parametrize(("target", "coef", "intercept"), [(XOR, [1, 1, -2], 0), (2 * XOR - 1, [2, 2, -4], -1)])
def test_xor_with_the_product_is_a_plane(target, coef, intercept):
    """B4.4: φ = (1, x1, x2, x1x2)."""
    state = fitted(np.column_stack([CORNERS, CORNERS.prod(axis=1)]), target, l2=0).state
    np.testing.assert_allclose(state.coef, coef, rtol=1e-13)
    np.testing.assert_allclose(state.intercept, intercept, atol=1e-14)


def test_the_shortest_of_many_exact_fits():
    """B4.4: with all quadratic columns XᵀX is singular; the pseudo-inverse gives (0, ½, ½, −2, ½, ½)."""
    x1, x2 = CORNERS.T
    fit = fitted(np.column_stack([x1, x2, x1 * x2, x1**2, x2**2]), XOR, l2=0)
    np.testing.assert_allclose(fit.state.coef, [0.5, 0.5, -2, 0.5, 0.5], atol=1e-14)
    np.testing.assert_allclose(fit.state.intercept, 0, atol=1e-14)
    assert fit.state.rank == 3
    assert "use a penalty above 0 (ridge)" in fit.warnings[0]


def test_an_equal_score_is_neither_class_and_the_sign_decides():
    """B4.4: classes by the sign of the score; probabilities (1 + s)/2 within reach of the targets."""
    x = np.array([[-1.0], [1.0]])
    state = fitted(x, [0, 1], l2=0, task=Task.CLASSIFICATION).state
    predicted = ridge.predict(ridge.Ridge(), state, np.array([[-5.0], [-0.5], [0], [0.5], [5]]))
    np.testing.assert_allclose(predicted[:, 1], [0, 0.25, 0.5, 0.75, 1], atol=1e-15)


def test_where_every_score_is_low_the_largest_takes_all():
    state = ridge.State(np.array([[1.0, 2.0, 3.0]]), np.array([-2.0, -4.0, -6.0]), 1, 1.0)
    np.testing.assert_allclose(ridge.predict(ridge.Ridge(), state, np.array([[0.5]])), [[1, 0, 0]])
    tied = ridge.State(np.zeros((1, 3)), np.full(3, -2.0), 1, 1.0)
    np.testing.assert_allclose(ridge.predict(ridge.Ridge(), tied, np.array([[0.5]])), [[1 / 3] * 3])


def test_the_largest_score_always_wins():
    """Also beyond 1, where a cut would make classes equal."""
    state = ridge.State(np.array([[1.4, 1.9, -3.0]]), np.zeros(3), 1, 1.0)
    assert ridge.predict(ridge.Ridge(), state, np.array([[1.0]])).argmax() == 1


@pytest.mark.parametrize("penalty", [1e-6, 1.0, 1e4])
def test_as_low_as_the_peer(penalty):
    x, y = datasets.load_diabetes(return_X_y=True)
    data = Data.of(Task.REGRESSION, x, y)
    peer = Peer(alpha=penalty, solver="svd").fit(x, y)
    params = ridge.Ridge(l2=penalty)
    state = ridge.fit(params, data, Context.of(0)).state
    theirs = ridge.State(peer.coef_, np.asarray(peer.intercept_), 10, 1.0)
    assert ridge.objective(params, state, data) <= ridge.objective(params, theirs, data) * (1 + 1e-12)
    np.testing.assert_allclose(state.coef, peer.coef_, rtol=1e-9, atol=1e-9)


def test_weights_agree_with_the_peer():
    x, y = datasets.load_diabetes(return_X_y=True)
    weights = np.random.default_rng(0).uniform(0.1, 3, len(y))
    peer = Peer(alpha=0.01, solver="svd").fit(x, y, sample_weight=weights)
    np.testing.assert_allclose(fitted(x, y, 0.01, weights=weights).state.coef, peer.coef_, rtol=1e-9)


def test_more_columns_than_rows():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 50)), rng.normal(size=20)
    np.testing.assert_allclose(fitted(x, y, 0.1).state.coef, Peer(alpha=0.1).fit(x, y).coef_, rtol=1e-9, atol=1e-12)
    exact = fitted(x, y, 0)
    np.testing.assert_allclose(ridge.predict(ridge.Ridge(), exact.state, x), y, rtol=1e-9)
    centred = x - x.mean(axis=0)
    np.testing.assert_allclose(exact.state.coef, np.linalg.pinv(centred) @ (y - y.mean()), rtol=1e-9, atol=1e-12)


def test_the_summary_says_how_firm_the_ground_is():
    x = np.random.default_rng(0).normal(size=(100, 3))
    state = fitted(x, x @ [1, 2, 3]).state
    result = ridge.summary(ridge.Ridge(), state)
    assert result["rank"] == 3
    unit = x - x.mean(axis=0)
    assert result["condition_number"] == pytest.approx(np.linalg.cond(unit / np.linalg.norm(unit, axis=0)), rel=1e-9)
    flat = fitted(np.column_stack([x, np.full(100, 7.0)]), x @ [1, 2, 3])
    assert flat.state.rank == 3
    assert ridge.summary(ridge.Ridge(), flat.state)["condition_number"] is None
    assert flat.state.coef[3] == 0


def table(seed=0, n=60, d=5):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)) @ rng.normal(size=(d, d))
    return x, x @ rng.normal(size=d) + 2 * rng.normal(size=n) + 3, rng.uniform(0.3, 3, n)


def chosen(x, y, **params):
    return ridge.fit(ridge.Ridge(**params), Data.of(Task.REGRESSION, x, y), Context.of(0))


def picked(state):
    return state.path.penalties[state.path.chosen]


def test_an_intercept_that_is_penalised_too():
    """Erratum E13: printed as (λI + XᵀX)⁻¹Xᵀy with the 1 among the inputs; the default leaves the intercept alone."""
    x, y, _ = table()
    ones = np.column_stack([np.ones(len(x)), x])
    literal = np.linalg.solve(4 * np.eye(6) + ones.T @ ones, ones.T @ y)
    state = chosen(x, y, l2=4, penalise_intercept=True).state
    np.testing.assert_allclose([state.intercept, *state.coef], literal, rtol=1e-12)
    free = chosen(x, y, l2=4).state
    moved = chosen(x, y + 1000, l2=4).state
    np.testing.assert_allclose(moved.coef, free.coef, rtol=1e-10)
    assert abs(float(free.intercept) - literal[0]) > 0.1
    none = chosen(x, y, l2=4, fit_intercept=False).state
    assert none.intercept == 0
    np.testing.assert_allclose(none.coef, np.linalg.solve(4 * np.eye(5) + x.T @ x, x.T @ y), rtol=1e-12)


@pytest.mark.parametrize("intercept", [True, False])
def test_generalised_cross_validation_is_golubs_formula(intercept):
    x, y, weights = table()
    data = Data.of(Task.REGRESSION, x, y, weights=weights)
    params = ridge.Ridge(selection="generalised_cross_validation", fit_intercept=intercept)
    fit = ridge.fit(params, data, Context.of(0))
    path, root = fit.state.path, np.sqrt(weights)
    for penalty, error, degrees in list(zip(path.penalties, path.errors, path.degrees, strict=True))[::7]:
        a, b = x * root[:, None], y * root
        own = np.outer(root, root) / weights.sum() if intercept else np.zeros((60, 60))
        a = a - own @ a
        hat = own + a @ np.linalg.solve(a.T @ a + penalty * np.eye(5), a.T)
        assert degrees == pytest.approx(np.trace(hat), rel=1e-9)
        assert error == pytest.approx(np.mean((b - hat @ b) ** 2) / (1 - np.trace(hat) / 60) ** 2, rel=1e-9)
    assert picked(fit.state) == path.penalties[path.errors.argmin()]
    again = ridge.fit(ridge.Ridge(l2=picked(fit.state), fit_intercept=intercept), data, Context.of(0)).state
    np.testing.assert_array_equal(again.coef, fit.state.coef)
    assert ridge.summary(params, fit.state)["cross_validation"]["standard_errors"] is None


def test_folds_are_those_of_separate_fits():
    x, y, weights = table()
    data, params = Data.of(Task.REGRESSION, x, y, weights=weights), ridge.Ridge(selection="lowest_error", cv=4)
    path = ridge.fit(params, data, Context.of(7)).state.path
    fold = Context.of(7).rng.permutation(60) % 4
    losses = []
    for k in range(4):
        kept, left = fold != k, fold == k
        share = weights[kept].sum() / weights.sum()
        peers = [Peer(penalty * share, solver="svd").fit(x[kept], y[kept], weights[kept]) for penalty in path.penalties]
        losses.append([np.average((y[left] - p.predict(x[left])) ** 2, weights=weights[left]) for p in peers])
    np.testing.assert_allclose(path.errors, np.mean(losses, axis=0), rtol=1e-9)
    np.testing.assert_allclose(path.spreads, np.std(losses, axis=0, ddof=1) / 2, rtol=1e-8)


def test_one_standard_error_is_the_strongest_penalty_as_good_as_the_best():
    x, y, _ = table()
    best, modest = (chosen(x, y, selection=choice).state for choice in ("lowest_error", "one_standard_error"))
    result = ridge.summary(ridge.Ridge(selection="lowest_error"), best)["cross_validation"]
    assert (result["lowest_error"], result["one_standard_error"]) == (picked(best), picked(modest))
    assert picked(modest) > picked(best)
    path = modest.path
    place = int(np.flatnonzero(path.penalties == picked(modest))[0])
    bound = path.errors.min() + path.spreads[path.errors.argmin()]
    assert path.errors[place] <= bound < path.errors[place - 1]
    assert np.linalg.norm(modest.coef) < np.linalg.norm(best.coef)


def test_classes_choose_their_penalty_too():
    x, y = datasets.load_iris(return_X_y=True)
    data = Data.of(Task.CLASSIFICATION, x, y)
    for choice in ("generalised_cross_validation", "lowest_error", "one_standard_error"):
        state = ridge.fit(ridge.Ridge(selection=choice), data, Context.of(0)).state
        assert (ridge.predict(ridge.Ridge(), state, x).argmax(axis=1) == y).mean() > 0.8


def test_a_choice_at_the_end_of_the_path_is_reported():
    rng = np.random.default_rng(0)
    (messages,) = chosen(rng.normal(size=(40, 3)), rng.normal(size=40), selection="one_standard_error").warnings
    assert "strongest" in messages


@pytest.mark.parametrize("seed", range(50))
def test_as_low_as_the_peer_on_drawn_problems(seed):
    """Constant, double and dependent columns, fewer rows than columns, uneven weights and units among them."""
    rng = np.random.default_rng(seed)
    n, d = rng.integers(2, 40), rng.integers(1, 12)
    x = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-2, 3, d)
    x[:, rng.integers(0, d)] = 7.0
    x[:, rng.integers(0, d)] = x[:, 0]
    y, weights, penalty = rng.normal(size=n), rng.uniform(0.1, 10, n), 10.0 ** rng.integers(-6, 4)
    params, data = ridge.Ridge(l2=penalty), Data.of(Task.REGRESSION, x, y, weights=weights)
    found = ridge.objective(params, ridge.fit(params, data, Context.of(0)).state, data)
    peer = Peer(penalty, solver="svd").fit(x, y, weights)
    theirs = weights @ (y - peer.predict(x)) ** 2 + penalty * (peer.coef_**2).sum()
    assert found == pytest.approx(theirs, rel=1e-8, abs=1e-12)
