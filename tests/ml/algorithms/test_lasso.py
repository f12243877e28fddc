"""Lasso against derived numbers, optimality conditions and scikit-learn."""

import numpy as np
import pytest
from sklearn import datasets
from sklearn.linear_model import Lasso as Peer

from app.ml.algorithms import lasso
from app.ml.contract.algorithm import Context, Data, Task

ORTHONORMAL = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]]) / 2
SHARP = ORTHONORMAL @ [3, 0.4]


def beside_mean(penalty, weights):
    """The penalty beside Σ w·residual²/2Σw, of one beside Σ w·residual²."""
    return penalty / 2 / np.sum(weights)


def fitted(x, y, weights=None, seed=0, **params):
    return lasso.fit(lasso.Lasso(**params), Data.of(Task.REGRESSION, x, y, weights=weights), Context.of(seed))


def lasso_fit(x, y, **params):
    return lasso.summary(lasso.Lasso(**params), fitted(x, y, **params).state)


@pytest.mark.parametrize("penalise_intercept", [True, False])
def test_soft_threshold_of_an_orthonormal_design(penalise_intercept):
    """B8.5: least squares (3, 0.4), penalty 1 beside the sum, gives (2.5, 0): the threshold is half the penalty."""
    state = fitted(ORTHONORMAL, SHARP, l1=beside_mean(1, np.ones(4)), penalise_intercept=penalise_intercept).state
    np.testing.assert_allclose(state.coef, [2.5, 0], atol=1e-14)
    assert state.coef[1] == 0


def test_the_two_forms_are_one():
    """B8.5: the bound that a penalty arrives at leads to the same fit."""
    x, y = datasets.load_diabetes(return_X_y=True)
    by_penalty = fitted(x, y, l1=0.3).state
    by_bound = fitted(x, y, selection="bound", bound=float(np.abs(by_penalty.coef).sum())).state
    np.testing.assert_allclose(by_bound.coef, by_penalty.coef, rtol=1e-7, atol=1e-7)
    assert by_bound.path.penalties[by_bound.path.chosen] == pytest.approx(0.3, rel=1e-7)
    np.testing.assert_allclose(
        fitted(ORTHONORMAL, SHARP, selection="bound", bound=2.5).state.coef, [2.5, 0], atol=1e-12
    )


def test_a_bound_out_of_reach_is_least_squares():
    state = fitted(ORTHONORMAL, SHARP, selection="bound", bound=1e6).state
    np.testing.assert_allclose(state.coef, [3, 0.4], rtol=1e-7)


@pytest.mark.parametrize("literal", [True, False])
def test_all_is_zero_from_the_first_penalty_on(literal):
    """B8.5: λ_max = 2 max|xⱼ·y| beside the sum of squares, max|xⱼ·y|/n beside half their mean."""
    x = np.random.default_rng(0).normal(size=(30, 4))
    y = x @ [1, 2, 0, 0] - 0.2
    first = np.abs((x if literal else x - x.mean(axis=0)).T @ (y if literal else y - y.mean())).max() / 30
    how = {"penalise_intercept": literal}
    assert fitted(x, y, l1=first * (1 + 1e-9), **how).state.coef.tolist() == [0, 0, 0, 0]
    assert (fitted(x, y, l1=first * 0.999, **how).state.coef != 0).sum() == 1
    assert lasso_fit(x, y, l1=0.01, **how)["path"]["penalties"][0] == pytest.approx(first)


def test_the_intercept_is_free_by_default():
    """Erratum E13: the printed sum begins at the intercept and would pull it to zero."""
    x = np.array([[-1.0], [1], [-1], [1]])
    y = np.full(4, 10.0)
    assert fitted(x, y, l1=1).state.intercept == pytest.approx(10)
    assert fitted(x, y, l1=1, penalise_intercept=True).state.intercept == pytest.approx(9)


def theirs(x, y, weights, penalty):
    """The peer's alpha is our l1."""
    peer = Peer(alpha=penalty, tol=1e-13, max_iter=200_000).fit(x, y, sample_weight=weights)
    return np.average((y - peer.predict(x)) ** 2, weights=weights) / 2 + penalty * np.abs(peer.coef_).sum()


def ours(x, y, weights, penalty):
    params = lasso.Lasso(l1=penalty)
    data = Data.of(Task.REGRESSION, x, y, weights=weights)
    fit = lasso.fit(params, data, Context.of(0))
    assert fit.converged
    return lasso.objective(params, fit.state, data)


@pytest.mark.parametrize("penalty", [0.001, 0.1, 1.0])
def test_objective_agrees_with_the_peer(penalty):
    x, y = datasets.load_diabetes(return_X_y=True)
    assert ours(x, y, np.ones(len(y)), penalty) == pytest.approx(theirs(x, y, np.ones(len(y)), penalty), rel=1e-8)


@pytest.mark.parametrize("seed", range(50))
def test_objective_agrees_with_the_peer_on_drawn_problems(seed):
    """Dependent columns and more columns than rows among them."""
    rng = np.random.default_rng(seed)
    n, d = rng.integers(3, 40), rng.integers(1, 30)
    rank = rng.integers(1, d + 1)
    x = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d))
    y, weights = x @ rng.normal(size=d) + rng.normal(size=n), rng.uniform(0.1, 5, n)
    first = np.abs((x - np.average(x, axis=0, weights=weights)).T @ (weights * y)).max() / weights.sum()
    penalty = float(first * 10 ** rng.uniform(-2, -0.1))
    assert ours(x, y, weights, penalty) <= theirs(x, y, weights, penalty) * (1 + 1e-8)


def test_optimality_along_the_whole_path():
    """|xⱼ·r|/n is the penalty where a coefficient is not zero, and no more where it is; gaps agree."""
    x, y = datasets.load_diabetes(return_X_y=True)
    path = fitted(x, y, l1=0.05).state.path
    assert (np.diff(path.penalties) < 0).all()
    assert (path.gaps <= 1e-10).all()
    pull = (x - x.mean(axis=0)).T @ ((y - y.mean())[:, None] - (x - x.mean(axis=0)) @ path.coefs.T) / len(y)
    excess = np.where(path.coefs.T != 0, np.abs(pull - path.penalties * np.sign(path.coefs.T)), 0)
    assert (excess <= 1e-6 * path.penalties).all()
    assert (np.abs(pull) <= path.penalties * (1 + 1e-6)).all()
    assert (path.coefs[0] == 0).all()
    assert (np.diff(np.abs(path.coefs).sum(axis=1)) > -1e-9).all()


def test_the_gap_is_an_upper_bound_and_says_when_it_is_not_reached():
    x, y = datasets.load_diabetes(return_X_y=True)
    params = lasso.Lasso(l1=0.001, max_iter=1, tol=1e-14)
    data = Data.of(Task.REGRESSION, x, y)
    rough = lasso.fit(params, data, Context.of(0))
    found, best = lasso.objective(params, rough.state, data), ours(x, y, np.ones(len(y)), 0.001)
    gap = rough.state.path.gaps[rough.state.path.chosen]
    assert (found - best) / found <= gap + 1e-12


def test_cross_validation_finds_the_inputs_that_matter():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 15))
    y = 3 * x[:, 2] - 2 * x[:, 7] + rng.normal(size=120)
    best, modest = (lasso_fit(x, y, selection=choice) for choice in ("lowest_error", "one_standard_error"))
    assert modest["selected"] == [2, 7]
    assert set(best["selected"]) >= {2, 7}
    cv = modest["cross_validation"]
    assert cv == best["cross_validation"]
    assert (best["l1"], modest["l1"]) == (cv["lowest_error"], cv["one_standard_error"])
    errors, spreads = np.array(cv["errors"]), np.array(cv["standard_errors"])
    place = errors.argmin()
    assert (
        modest["path"]["penalties"].index(modest["l1"])
        == np.flatnonzero(errors <= errors[place] + spreads[place]).min()
    )
    assert errors[place] == pytest.approx(1, abs=0.35)
    assert modest["duality_gap"] <= 1e-10


def test_cross_validation_is_fits_to_the_other_rows():
    """Moments of folds added up give what fits to the rows themselves give."""
    x, y = datasets.load_diabetes(return_X_y=True)
    path = fitted(x, y, selection="lowest_error", cv=4, seed=3).state.path
    fold = Context.of(3).rng.permutation(len(y)) % 4
    for place in (0, 15, 30):
        errors = []
        for k in range(4):
            kept, left = fold != k, fold == k
            peer = Peer(alpha=path.penalties[place], tol=1e-12, max_iter=100_000).fit(x[kept], y[kept])
            errors.append(((y[left] - peer.predict(x[left])) ** 2).mean())
        assert path.errors[place] == pytest.approx(np.mean(errors), rel=1e-5)
        assert path.spreads[place] == pytest.approx(np.std(errors, ddof=1) / 2, rel=1e-4)


def test_the_path_leads_to_the_penalty_requested():
    x, y = datasets.load_diabetes(return_X_y=True)
    path = fitted(x, y, l1=0.5).state.path
    assert path.penalties[-1] == pytest.approx(0.5, rel=1e-15)
    assert path.chosen == len(path.penalties) - 1
    assert len(path.penalties) == 40
    beyond = fitted(x, y, l1=1e3).state.path
    assert beyond.penalties[beyond.chosen] == pytest.approx(1e3, rel=1e-15)
    assert not beyond.coefs.any()


@pytest.mark.parametrize("seed", range(10))
def test_without_an_intercept_it_is_the_peers(seed):
    """Inputs and target far from zero, with weights; the prediction at 0 is 0."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(40, 6)) + 3
    y, weights = x @ [2, 0, -1, 0, 0, 1] + 5 + rng.normal(size=40), rng.uniform(0.1, 5, 40)
    penalty = float(np.abs(x.T @ (weights * y)).max() / weights.sum() * 10 ** rng.uniform(-4, -0.3))
    state = fitted(x, y, weights, l1=penalty, fit_intercept=False).state
    scale = weights.mean()  # the peer makes the weights add up to the number of rows
    peer = Peer(alpha=penalty, fit_intercept=False, tol=1e-14, max_iter=500_000)
    peer.fit(x, y, sample_weight=weights / scale)
    np.testing.assert_allclose(state.coef, peer.coef_, rtol=1e-6, atol=1e-8)
    assert lasso.predict(lasso.Lasso(fit_intercept=False), state, np.zeros((1, 6))) == [0]


def test_without_an_intercept_bound_and_folds_agree_with_it():
    x, y = datasets.load_diabetes(return_X_y=True)
    by_penalty = fitted(x, y, l1=0.3, fit_intercept=False).state
    bound = float(np.abs(by_penalty.coef).sum())
    by_bound = fitted(x, y, selection="bound", bound=bound, fit_intercept=False).state
    np.testing.assert_allclose(by_bound.coef, by_penalty.coef, rtol=1e-7, atol=1e-7)
    path = fitted(x, y, selection="lowest_error", cv=4, seed=3, fit_intercept=False).state.path
    fold, errors = Context.of(3).rng.permutation(len(y)) % 4, []
    for k in range(4):
        peer = Peer(alpha=path.penalties[15], fit_intercept=False, tol=1e-12, max_iter=100_000)
        peer.fit(x[fold != k], y[fold != k])
        errors.append(((y[fold == k] - peer.predict(x[fold == k])) ** 2).mean())
    assert path.errors[15] == pytest.approx(np.mean(errors), rel=1e-5)


def test_without_an_intercept_none_is_penalised():
    x, y = datasets.load_diabetes(return_X_y=True)
    plain, requested = (fitted(x, y, fit_intercept=False, penalise_intercept=both).state for both in (False, True))
    assert (requested.intercept, requested.coef.tolist()) == (0, plain.coef.tolist())
