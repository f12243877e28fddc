"""One-class support vector machines against published numbers, identities and libsvm."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import make_moons
from sklearn.svm import OneClassSVM as Peer

from app.base.errors import InvalidData
from app.ml.algorithms import one_class_svm as one_class
from app.ml.contract.algorithm import Context, Data, Task
from app.ml.numerics.kernel_functions.rbf_kernel import Rbf

MOONS = make_moons(100, noise=0.1, random_state=4)[0]


def fitted(x, **params):
    params = one_class.OneClassSVM(**params)
    return params, one_class.fit(params, Data.of(Task.DENSITY, x), Context.of(0)).state


def test_shares_of_vectors_and_outliers():
    """P5: n = 100 and C = 0.02 is ν = ½: at least half are support vectors, at most half outside, one ρ."""
    params, state = fitted(MOONS, C=0.02, gamma=5.0, tol=1e-9)
    assert state.nu == pytest.approx(0.5)
    values = one_class.predict(params, state, MOONS)
    places, coef = state.machine.places, state.machine.coef[0]
    assert len(places) >= 50
    assert (values < -1e-8).sum() <= 50
    free = places[coef < 0.02 - 1e-12]
    assert free.size > 0
    np.testing.assert_allclose(values[free], 0, atol=1e-9)
    assert coef.sum() == pytest.approx(1, abs=1e-12)
    assert len(places) >= 1 / 0.02
    report = one_class.summary(params, state)
    assert report["outside_share"] <= 0.5 <= report["support_vector_share"]
    np.testing.assert_array_equal(one_class.anomaly(params, state, MOONS), values < 0)


def test_the_dual_is_a_minimum():
    """P5: ½ αᵀKα, printed as a maximum."""
    x = MOONS[:12]
    params, state = fitted(x, nu=0.4, gamma=5.0, tol=1e-9)
    square = Rbf(np.array([5.0])).matrix(x, x)
    total = {"type": "eq", "fun": lambda a: a.sum() - 1}
    bounds = [(0, 1 / (0.4 * 12))] * 12
    best = minimize(lambda a: 0.5 * a @ square @ a, np.full(12, 1 / 12), bounds=bounds, constraints=total, tol=1e-14)
    assert state.objective == pytest.approx(best.fun, rel=1e-6)
    assert params.nu == 0.4


@pytest.mark.parametrize("nu", [0.05, 0.3, 0.9])
def test_decision_values_of_libsvm(nu):
    params, state = fitted(MOONS, nu=nu, gamma=2.0, tol=1e-7)
    theirs = Peer(nu=nu, gamma=2.0, tol=1e-7).fit(MOONS)
    total = nu * len(MOONS)
    np.testing.assert_allclose(
        total * (one_class.predict(params, state, MOONS) + state.rho), theirs.score_samples(MOONS), atol=1e-5
    )
    np.testing.assert_allclose(total * state.rho, theirs.offset_[0], atol=1e-5)
    assert state.gap < 1e-6


def test_a_cost_below_one_over_n_is_refused():
    with pytest.raises(InvalidData, match="at least 1/rows"):
        fitted(MOONS, C=0.009)


def test_far_rows_are_anomalies():
    params, state = fitted(MOONS, nu=0.1, gamma=2.0)
    assert one_class.anomaly(params, state, np.array([[9.0, 9.0], [-5.0, 0.0]])).all()
    assert one_class.anomaly(params, state, MOONS).mean() == pytest.approx(0.1, abs=0.03)


@pytest.mark.parametrize("far", [1.0, 3.0, 30.0])
def test_a_plane_parts_the_rows_from_the_origin_as_that_of_libsvm(far):
    x = np.random.default_rng(3).normal(far, 1, (300, 4))
    _, state = fitted(x, kernel="linear", nu=0.2, tol=1e-7)
    theirs = Peer(kernel="linear", nu=0.2, tol=1e-9).fit(x)
    total = 0.2 * len(x)
    own, peer = total * state.machine.weights[0], theirs.coef_[0]
    np.testing.assert_allclose(own, peer, rtol=1e-4)

    def primal(weights, rho):
        return weights @ weights / 2 - total * rho + np.maximum(0, rho - x @ weights).sum()

    assert primal(own, total * state.rho) <= primal(peer, theirs.offset_[0]) * (1 - 1e-12)


def test_no_plane_parts_rows_around_the_origin():
    x = np.random.default_rng(0).normal(size=(1000, 10))
    params = one_class.OneClassSVM(kernel="linear")
    fit = one_class.fit(params, Data.of(Task.DENSITY, x - x.mean(axis=0)), Context.of(0))
    assert fit.converged
    assert fit.iterations < 20_000
    assert fit.state.gap <= params.tol
    assert abs(fit.state.rho) < 1e-2
