"""Logistic regression against published numbers, identities and scikit-learn."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn import datasets
from sklearn.linear_model import LogisticRegression as Peer

from app.ml.algorithms import logistic
from app.ml.contract import Context, Data, Task

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
    params = logistic.Logistic(penalty=ALMOST_FREE, solver=solver)
    state = logistic.fit(params, data, Context.of(0)).state
    np.testing.assert_allclose(state.intercept, [-5.770321], atol=5e-7)
    np.testing.assert_allclose(state.coef, [[2.564587]], atol=5e-7)
    assert logistic.objective(params, state, data) == pytest.approx(2.5030497, abs=5e-8)
    np.testing.assert_allclose(logistic.predict(params, state, np.array([[2.25]])), [[0.5, 0.5]], atol=1e-9)


def test_the_logistic_curve():
    """B8.1: P(0) = ½, P(2) = 0.8807971, P(−2) = 0.1192029."""
    state = logistic.State(np.array([[1.0]]), np.array([0.0]), np.array([True, True]))
    answer = logistic.predict(logistic.Logistic(), state, np.array([[0.0], [2.0], [-2.0], [800.0], [-800.0]]))
    np.testing.assert_allclose(answer[:, 1], [0.5, 0.8807971, 0.1192029, 1, 0], atol=5e-8)


def test_the_loss_of_a_row_is_of_its_own_class():
    """B8.1 prints the likelihood with P(y = yᵢ); it is P(1) for the ones and 1 − P(1) for the others."""
    data = of(HOURS, PASSED)
    params = logistic.Logistic()
    state = logistic.State(np.array([[0.3]]), np.array([0.1]), np.array([True, True]))
    p = 1 / (1 + np.exp(-(0.3 * HOURS[:, 0] + 0.1)))
    expected = -(PASSED * np.log(p) + (1 - PASSED) * np.log(1 - p)).sum() + 0.5 * 0.3**2
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
    data, params = of(x, y), logistic.Logistic(penalty=penalty)
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
    fit = fitted(of(x, [0, 0, 1, 1]), penalty=1e-6)
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
    assert fit.warnings == ("Not converged after 3 iterations.",)


def test_progress_and_curve():
    told = []
    context = Context.of(0, lambda fraction, **measures: told.append((fraction, measures["loss"])))
    fit = logistic.fit(logistic.Logistic(solver="lbfgs"), of(*table("wine", scaled=True)), context)
    assert [loss for _, loss in told] == fit.curves["loss"]
    assert len(told) == fit.iterations
    assert (np.diff(fit.curves["loss"]) <= 1e-12).all()


def noisy():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(120, 40))
    return of(x, (x[:, 0] + rng.normal(size=120) > 0).astype(float))


def test_an_early_stop_keeps_the_best_of_the_rows_set_aside():
    params = {"penalty": 1e-6, "solver": "lbfgs", "validation_fraction": 0.3, "patience": 4}
    fit = fitted(noisy(), early_stopping=True, **params)
    history = fit.curves["validation_loss"]
    lowest = int(np.argmin(history))
    assert not fit.converged
    assert len(history) == lowest + 1 + 4
    assert fit.warnings == (f"Stopped early, as asked: the coefficients are those of iteration {lowest + 1}.",)
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
