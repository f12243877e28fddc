"""Logistic regression against published numbers, identities and scikit-learn."""

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import sparse
from scipy.special import softmax
from sklearn import datasets
from sklearn.linear_model import LogisticRegression as Peer

from app.base.errors import InvalidData
from app.ml.algorithms import logistic
from app.ml.contract.algorithm import Affine, Context, Data, Task
from app.ml.contract.sparse_rows import SparseRows
from app.ml.numerics.linear_models import cross_entropy_minimum
from app.ml.numerics.linear_models.separation import NEARLY_UNBOUNDED, UNBOUNDED

HOURS = np.array([0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4])[:, None]
PASSED = np.array([0, 0, 0, 1, 0, 1, 1, 1])
ALMOST_FREE = 1e-12


def of(x, y, **more):
    return Data.of(Task.CLASSIFICATION, x, y, **more)


def fitted(data, seed=0, **params):
    return logistic.fit(logistic.Logistic(**params), data, Context.of(seed))


@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
def test_the_published_example(solver):
    """B8.1: w = (−5.770321, 2.564587), log-likelihood −2.5030497, P(2.25) = ½."""
    data = of(HOURS, PASSED)
    params = logistic.Logistic(l2=ALMOST_FREE, solver=solver)
    state = logistic.fit(params, data, Context.of(0)).state
    np.testing.assert_allclose(state.intercept, [-5.770321], atol=5e-7)
    np.testing.assert_allclose(state.coef, [[2.564587]], atol=5e-7)
    assert logistic.objective(params, state, data) == pytest.approx(2.5030497 / 8, abs=1e-8)
    np.testing.assert_allclose(logistic.predict(params, state, np.array([[2.25]])), [[0.5, 0.5]], atol=1e-9)


@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
@pytest.mark.parametrize("as_rows", [np.asarray, lambda x: SparseRows(sparse.csr_array(x))], ids=["array", "sparse"])
@pytest.mark.parametrize("constant", [0.0, 0.1, 1e6])
def test_maximum_likelihood(solver, as_rows, constant):
    """B8.1 again, without a penalty, beside a column that does not vary: errors as those of statsmodels."""
    x = np.column_stack([HOURS, np.full(len(HOURS), constant)])
    fit = fitted(Data.of(Task.CLASSIFICATION, as_rows(x), PASSED), l2=0, solver=solver)
    predicted = logistic.predict(logistic.Logistic(), fit.state, x)
    peer = sm.Logit(PASSED, sm.add_constant(HOURS)).fit(disp=0)
    assert fit.converged
    assert not fit.warnings
    np.testing.assert_allclose(fit.state.coef[0], [2.564587], atol=5e-7)
    np.testing.assert_allclose(predicted[:, 1], peer.predict(), atol=1e-7)


def test_errors_of_maximum_likelihood():
    described = logistic.summary(logistic.Logistic(l2=0), fitted(of(HOURS, PASSED), l2=0).state)
    peer = sm.Logit(PASSED, sm.add_constant(HOURS)).fit(disp=0)
    np.testing.assert_allclose(described["standard_errors"][0], peer.bse[1:], rtol=1e-6)
    np.testing.assert_allclose(described["intercept_standard_errors"], peer.bse[:1], rtol=1e-6)


def test_maximum_likelihood_of_three_classes():
    x, y = datasets.load_wine(return_X_y=True)
    x = x[:, :2]
    fit, peer = fitted(of(x, y), l2=0), sm.MNLogit(y, sm.add_constant(x)).fit(disp=0)
    predicted = logistic.predict(logistic.Logistic(), fit.state, x)
    np.testing.assert_allclose(predicted, peer.predict(), atol=1e-6)


def test_without_a_maximum_of_the_likelihood():
    fit = fitted(of([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]), l2=0)
    assert fit.warnings == (UNBOUNDED,)
    assert np.isfinite(fit.state.coef).all()
    partly = fitted(of([[0.0], [1.0], [1.0], [2.0], [2.0], [2.0]], [0, 0, 1, 1, 1, 1]), l2=0)
    assert NEARLY_UNBOUNDED in partly.warnings
    middle = logistic.predict(logistic.Logistic(), partly.state, np.array([[1.0]]))
    np.testing.assert_allclose(middle, [[0.5, 0.5]], atol=1e-6)


def test_the_logistic_curve():
    """B8.1: P(0) = ½, P(2) = 0.8807971, P(−2) = 0.1192029."""
    state = logistic.State(np.array([[1.0]]), np.array([0.0]), np.array([True, True]))
    predicted = logistic.predict(logistic.Logistic(), state, np.array([[0.0], [2.0], [-2.0], [800.0], [-800.0]]))
    np.testing.assert_allclose(predicted[:, 1], [0.5, 0.8807971, 0.1192029, 1, 0], atol=5e-8)


def test_the_loss_of_a_row_is_of_its_own_class():
    """B8.1 prints the likelihood with P(y = yᵢ); it is P(1) for the ones and 1 − P(1) for the others."""
    data = of(HOURS, PASSED)
    params = logistic.Logistic()
    state = logistic.State(np.array([[0.3]]), np.array([0.1]), np.array([True, True]))
    p = 1 / (1 + np.exp(-(0.3 * HOURS[:, 0] + 0.1)))
    expected = -(PASSED * np.log(p) + (1 - PASSED) * np.log(1 - p)).mean() + 0.5 * 0.3**2 / 8
    assert logistic.objective(params, state, data) == pytest.approx(expected, rel=1e-14)


def table(name, *, scaled):
    x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return ((x - x.mean(axis=0)) / np.where(x.std(axis=0) > 0, x.std(axis=0), 1) if scaled else x), y


@pytest.mark.parametrize("penalty", [1.0, 1e-3])
@pytest.mark.parametrize("scaled", [True, False], ids=["scaled", "raw"])
@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer"])
def test_as_low_as_the_peer(name, scaled, penalty):
    x, y = table(name, scaled=scaled)
    no_worse_than_the_peer(x, y, penalty)


def test_as_low_as_the_peer_on_digits():
    no_worse_than_the_peer(*table("digits", scaled=True), 1.0)


def no_worse_than_the_peer(x, y, penalty):
    data, params = of(x, y), logistic.Logistic(l2=penalty / len(y))
    peer = Peer(C=1 / penalty, solver="newton-cholesky", tol=1e-10, max_iter=1000).fit(x, y)
    theirs = logistic.State(peer.coef_.T, peer.intercept_, np.ones(len(peer.classes_), bool))
    fit = logistic.fit(params, data, Context.of(0))
    assert fit.converged
    ours, best = (logistic.objective(params, state, data) for state in (fit.state, theirs))
    assert ours <= best * (1 + 1e-10)
    np.testing.assert_allclose(logistic.predict(params, fit.state, x), peer.predict_proba(x), atol=1e-5)


@pytest.mark.parametrize("classes", [2, 3])
def test_both_solvers_find_the_same(classes):
    x, y = table("wine", scaled=True)
    data = of(x[y < classes], y[y < classes])
    newton, lbfgs = (fitted(data, solver=solver) for solver in ("newton", "lbfgs"))
    assert newton.converged
    assert lbfgs.converged
    np.testing.assert_allclose(newton.state.coef, lbfgs.state.coef, atol=1e-6)


def test_separable_data_stay_finite():
    """B8.1: without a penalty the coefficient would grow without bound."""
    x = np.array([[-2.0], [-1], [1], [2]])
    fit = fitted(of(x, [0, 0, 1, 1]), l2=2.5e-7)
    assert fit.converged
    assert 5 < fit.state.coef[0, 0] < 50


def test_scores_of_classes_sum_to_zero():
    """The penalty chooses among scores that differ by a constant."""
    state = fitted(of(*table("iris", scaled=False))).state
    np.testing.assert_allclose(state.coef.sum(axis=1), 0, atol=1e-9)
    x = table("iris", scaled=False)[0]
    expected = softmax(x @ state.coef + state.intercept, axis=1)
    np.testing.assert_allclose(logistic.predict(logistic.Logistic(), state, x), expected, rtol=1e-12)


def test_a_class_without_rows_has_no_probability():
    x, y = table("iris", scaled=False)
    two = y != 1
    part = fitted(of(x[two], y[two], classes=3))
    assert (logistic.predict(logistic.Logistic(), part.state, x)[:, 1] == 0).all()
    pair = fitted(of(x[two], y[two] / 2))
    np.testing.assert_allclose(
        logistic.predict(logistic.Logistic(), part.state, x)[:, [0, 2]],
        logistic.predict(logistic.Logistic(), pair.state, x),
        rtol=1e-12,
    )


def test_not_converging_is_a_fact():
    fit = fitted(of(*table("wine", scaled=False)), solver="lbfgs", max_iter=3)
    assert not fit.converged
    assert fit.iterations == 3
    assert not fit.converged
    assert not fit.warnings, "the report has a sentence of its own"


def test_progress_and_curve():
    result = []
    context = Context.of(0, lambda fraction, **measures: result.append((fraction, measures["loss"])))
    fit = logistic.fit(logistic.Logistic(solver="lbfgs"), of(*table("wine", scaled=True)), context)
    assert [loss for _, loss in result] == fit.curves["loss"]
    assert len(result) == fit.iterations
    assert (np.diff(fit.curves["loss"]) <= 1e-12).all()


def noisy():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(120, 40))
    return of(x, (x[:, 0] + rng.normal(size=120) > 0).astype(float))


def test_an_early_stop_keeps_the_best_of_the_rows_set_aside():
    params = {"l2": 1e-8, "solver": "lbfgs", "validation_fraction": 0.3, "n_iter_no_change": 4}
    fit = fitted(noisy(), early_stopping=True, **params)
    history = fit.curves["validation_loss"]
    lowest = int(np.argmin(history))
    assert not fit.converged
    assert len(history) == lowest + 1 + 4
    assert fit.warnings == (f"Stopped early, as requested: the coefficients are those of iteration {lowest + 1}.",)
    through = fitted(noisy(), **params)
    assert np.linalg.norm(fit.state.coef) < np.linalg.norm(through.state.coef)


def test_the_seed_draws_the_rows_set_aside():
    one, same, other = (
        fitted(noisy(), seed=seed, early_stopping=True, solver="lbfgs").state.coef.tobytes() for seed in (1, 1, 2)
    )
    assert one == same
    assert one != other


def test_too_few_rows_to_set_some_aside():
    fit = fitted(of(HOURS, PASSED), early_stopping=True)
    assert fit.converged
    assert fit.warnings == ("No class has rows enough to set some aside: not stopped early.",)


@pytest.mark.parametrize("weighted", [False, True])
def test_errors_are_those_of_maximum_likelihood(weighted):
    x, y = table("breast_cancer", scaled=True)
    x = 3 * x[:, [0, 4, 8, 9]] + 1
    weights = np.random.default_rng(0).uniform(0.5, 2, len(y)) if weighted else np.ones(len(y))
    params, data = logistic.Logistic(l2=ALMOST_FREE), of(x, y, weights=weights)
    result = logistic.summary(params, logistic.fit(params, data, Context.of(0)).state)
    peer = sm.GLM(y, sm.add_constant(x), family=sm.families.Binomial(), freq_weights=weights).fit(tol=1e-14)
    np.testing.assert_allclose([result["intercepts"][0], *result["coefficients"][0]], peer.params, rtol=1e-7)
    found = [result["intercept_standard_errors"][0], *result["standard_errors"][0]]
    np.testing.assert_allclose(found, peer.bse, rtol=1e-6)
    np.testing.assert_allclose(result["z_values"][0], peer.tvalues[1:], rtol=1e-6)
    np.testing.assert_allclose(result["p_values"][0], peer.pvalues[1:], rtol=1e-5)
    np.testing.assert_allclose(result["odds_ratios"][0], np.exp(peer.params[1:]), rtol=1e-6)
    bounds = np.exp(peer.conf_int()[1:]).T
    np.testing.assert_allclose([result["odds_ratios_lower"][0], result["odds_ratios_upper"][0]], bounds, rtol=1e-5)


def test_errors_of_many_classes_are_those_of_maximum_likelihood():
    """The peer tells classes against the first; the difference of two of our scores has the same error."""
    x, y = table("iris", scaled=True)
    rng = np.random.default_rng(0)
    y = np.where(rng.random(len(y)) < 0.3, rng.integers(0, 3, len(y)), y)
    params, data = logistic.Logistic(l2=1e-11), of(x, y)
    state = logistic.fit(params, data, Context.of(0)).state
    peer = sm.MNLogit(y, sm.add_constant(x)).fit(disp=0)
    factor = np.concatenate([state.factor[-1:], state.factor[:-1]])
    errors = np.sqrt(((factor[:, 1:] - factor[:, :1]) ** 2).sum(axis=2))
    np.testing.assert_allclose(errors, peer.bse, rtol=1e-4)


def test_errors_in_units_of_the_table():
    """The same fit in other columns: x = (z - offset)/scale."""
    z, y = table("breast_cancer", scaled=False)
    z = z[:, [0, 4, 8]]
    offset, scale = z.mean(axis=0), z.std(axis=0)
    params = logistic.Logistic(l2=1e-12)
    state = logistic.fit(params, of((z - offset) / scale, y), Context.of(0)).state
    result = logistic.summary(params, state, Affine(sparse.diags_array(1 / scale).tocsr(), -offset / scale))
    peer = sm.Logit(y, sm.add_constant(z)).fit(disp=0, maxiter=100)
    np.testing.assert_allclose([result["intercepts"][0], *result["coefficients"][0]], peer.params, rtol=1e-5)
    found = [result["intercept_standard_errors"][0], *result["standard_errors"][0]]
    np.testing.assert_allclose(found, peer.bse, rtol=1e-4)


@pytest.mark.parametrize("classes", [2, 3])
def test_separable_classes_are_reported(classes):
    x, y = table("iris", scaled=True)
    x, y = x[y < 2], y[y < 2]
    if classes == 3:
        x, y = np.vstack([x, x[:20] + 50]), np.append(y, np.full(20, 2))
    fit = fitted(of(x, y), l2=1e-5)
    assert fit.converged
    assert "separates" in fit.warnings[0]
    assert "standard_errors" not in logistic.summary(logistic.Logistic(), fit.state)
    assert fitted(of(HOURS, PASSED)).warnings == ()


def test_gradient_ascent_climbs_the_likelihood_and_descent_does_not():
    """Erratum E10: for the likelihood, which is maximised, the step is +εXᵀ(y − p)."""
    rows, w, worse = np.column_stack([np.ones(8), HOURS]), np.zeros(2), np.zeros(2)
    for _ in range(40_000):
        w = w + 0.05 * rows.T @ (PASSED - 1 / (1 + np.exp(-rows @ w)))
    np.testing.assert_allclose(w, [-5.770321, 2.564587], atol=1e-5)
    for _ in range(100):
        worse = worse - 0.05 * rows.T @ (PASSED - 1 / (1 + np.exp(-np.clip(rows @ worse, -50, 50))))
    p = 1 / (1 + np.exp(-np.clip(rows @ worse, -50, 50)))
    assert (PASSED * np.log(p) + (1 - PASSED) * np.log1p(-p)).sum() < 8 * np.log(0.5)


@pytest.mark.parametrize("seed", range(50))
def test_as_low_as_the_peer_on_drawn_problems(seed):
    """Constant and double columns, fewer rows than columns, separable classes, uneven weights among them."""
    rng = np.random.default_rng(seed)
    n, d, k = rng.integers(6, 50), rng.integers(1, 9), rng.integers(2, 5)
    x = rng.normal(size=(n, d))
    x[:, rng.integers(0, d)] = 3.0
    x[:, rng.integers(0, d)] = x[:, 0]
    y = rng.integers(0, k, n)
    y[:k] = np.arange(k)
    x += rng.choice([0.0, 2.0]) * y[:, None]
    weights, penalty = rng.uniform(0.1, 10, n), 10.0 ** rng.integers(-3, 3)
    params, data = logistic.Logistic(l2=penalty / weights.sum(), tol=1e-12), of(x, y, weights=weights)
    ours = logistic.objective(params, logistic.fit(params, data, Context.of(0)).state, data)
    peer = Peer(C=1 / penalty, solver="newton-cholesky", tol=1e-12, max_iter=10_000).fit(x, y, weights)
    theirs = logistic.State(peer.coef_.T, peer.intercept_, np.ones(k, bool))
    assert ours == pytest.approx(logistic.objective(params, theirs, data), rel=1e-8)


def test_a_head_start_changes_nothing_but_the_time(monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.normal([0, 100, 0, 0, 0], 1, (4000, 5))
    data = of(x, (x @ [1, 0.1, -1, 0, 2] - 10 + rng.logistic(size=4000) > 0).astype(float))
    plain = fitted(data, tol=1e-10)
    monkeypatch.setattr(cross_entropy_minimum, "PART", 500)
    quick = fitted(data, tol=1e-10)
    assert quick.curves["loss"][0] < plain.curves["loss"][0]
    np.testing.assert_allclose(quick.state.coef, plain.state.coef, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(quick.state.factor, plain.state.factor, rtol=1e-6)


def test_many_scores_arrive_without_a_hessian(monkeypatch):
    data = of(*table("digits", scaled=True))
    monkeypatch.setattr(cross_entropy_minimum, "NEWTON_UNKNOWNS", 0)
    rough = fitted(data, tol=1e-6)
    assert rough.converged
    monkeypatch.undo()
    params = logistic.Logistic()
    values = [logistic.objective(params, fit.state, data) for fit in (rough, fitted(data))]
    assert values[0] == pytest.approx(values[1], rel=1e-8)


def test_a_class_that_has_next_to_no_weight_has_no_errors():
    """Its probability differs from 0 by less than a rounding of 1: no curvature is left."""
    params, data = logistic.Logistic(l2=1e6), Data.of(Task.CLASSIFICATION, [[0.0], [1.0]], [0, 1], weights=[1e-9, 1e9])
    fit = logistic.fit(params, data, Context.of(0))
    assert fit.state.factor.size == 0
    np.testing.assert_allclose(logistic.predict(params, fit.state, data.x)[:, 0], 1e-18, rtol=1e-6)


@pytest.mark.parametrize("name", ["iris", "wine"])
def test_units_as_far_apart_as_numbers_go_take_few_iterations(name):
    x, y = table(name, scaled=True)
    for seed in range(4):
        powers = np.random.default_rng(seed).choice([300, -300, 0], x.shape[1])
        fit = fitted(of(x * 2.0**powers, y))
        assert fit.converged
        assert fit.iterations < 100
        assert np.isfinite(fit.state.coef).all()
        assert np.isfinite(fit.state.factor).all()


def test_columns_that_depend_on_each_other_have_no_errors_where_the_penalty_is_rounding():
    x = np.repeat(np.linspace(-1, 1, 40)[:, None], 2, axis=1) * 2.0**300
    fit = fitted(of(x, np.arange(40) % 3 == 0))
    assert fit.converged
    assert fit.state.factor.size == 0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1e200, 1e300])
def test_columns_whose_squares_are_no_numbers_are_refused(size):
    with pytest.raises(InvalidData, match="scale them"):
        fitted(of(HOURS * size, PASSED))
