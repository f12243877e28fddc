"""Support vector regression against published numbers, identities and libsvm."""

import numpy as np
import pytest
from sklearn import datasets, svm

from app.base.errors import InvalidData
from app.ml.algorithms import svr
from app.ml.contract.algorithm import Context, Data, Task

LINE = np.linspace(0, 10, 11)[:, None]


def of(x, y, **more):
    return Data.of(Task.REGRESSION, x, y, **more)


def fitted(data, **params):
    """Parameters count in units of the target, as those of libsvm do."""
    params = svr.SVR(**{"scale_target": False} | params)
    return params, svr.fit(params, data, Context.of(0)).state


@pytest.mark.parametrize("cost", [1000.0, None])
def test_the_flattest_line_in_the_tube(cost):
    """S13: y = 2x + 1 on 0 … 10 with ε = ½ has the slope (20 − 1)/10."""
    y = 2 * LINE[:, 0] + 1
    params, state = fitted(of(LINE, y), kernel="linear", C=cost, epsilon=0.5, tol=1e-9)
    np.testing.assert_allclose(state.machine.weights, [[1.9]], atol=1e-6)
    residual = svr.predict(params, state, LINE) - y
    assert np.abs(residual).max() <= 0.5 + 1e-6
    inside = np.abs(residual) < 0.5 - 1e-6
    assert not set(np.flatnonzero(inside)) & set(state.machine.places), "rows in the tube have no coefficient"


def test_targets_within_the_tube_have_a_flat_function():
    """S13: w = 0 where the range is at most 2ε."""
    params, state = fitted(of(LINE, np.sin(LINE[:, 0])), epsilon=1.0)
    assert state.machine.places.size == 0
    assert np.ptp(svr.predict(params, state, LINE)) == 0
    assert state.norm == 0


def test_no_hard_tube():
    with pytest.raises(InvalidData, match="hard tube does not exist"):
        fitted(of(LINE, np.where(LINE[:, 0] == 5, 9.0, 0.0)), kernel="linear", C=None, max_iter=20_000)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_predictions_of_libsvm(kernel):
    x, y = datasets.load_diabetes(return_X_y=True)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    weights = np.random.default_rng(0).uniform(0.5, 2, len(y))
    params, state = fitted(of(x, y, weights=weights), kernel=kernel, epsilon=10.0, C=20.0, gamma=0.1, tol=1e-7)
    theirs = svm.SVR(kernel=kernel, epsilon=10.0, C=20.0, gamma=0.1, tol=1e-5).fit(x, y, sample_weight=weights)
    np.testing.assert_allclose(svr.predict(params, state, x), theirs.predict(x), atol=1e-3)
    assert state.gap <= 1e-7
    assert state.machine.places.size == theirs.support_.size


def test_the_unit_of_the_target_does_not_matter():
    x, y = datasets.load_diabetes(return_X_y=True)
    params, state = fitted(of(x, y), epsilon=8.0, C=16.0)
    other, moved = fitted(of(x, 1024 * y), epsilon=8.0 * 1024, C=16.0 * 1024)
    np.testing.assert_allclose(svr.predict(other, moved, x), 1024 * svr.predict(params, state, x), rtol=1e-12)


def test_held_out_rows_are_predicted_as_well_as_by_libsvm():
    x, y = datasets.load_diabetes(return_X_y=True)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    params, state = fitted(of(x[:300], y[:300]), C=50.0, epsilon=5.0)
    ours = (svr.predict(params, state, x[300:]) - y[300:]) ** 2
    theirs = (svm.SVR(C=50.0, epsilon=5.0).fit(x[:300], y[:300]).predict(x[300:]) - y[300:]) ** 2
    assert ours.mean() <= theirs.mean() + theirs.std() / np.sqrt(len(theirs))


@pytest.mark.parametrize(("unit", "advice"), [(3000.0, "Give `C` about"), (0.001, "Give `epsilon` about"), (1.0, None)])
def test_parameters_that_do_not_suit_the_unit_of_the_target_are_warned_of(unit, advice):
    """The defaults on the same line in other units: its fit is as good where the advice is followed."""
    x = np.random.default_rng(0).normal(size=(200, 3))
    y = unit * (x @ [2.0, -1.0, 0.5])
    warnings = svr.fit(svr.SVR(scale_target=False), of(x, y), Context.of(0)).warnings
    assert [advice in warning for warning in warnings] == ([] if advice is None else [True])
    suited = svr.SVR(C=5 * y.std(), epsilon=0.1 * y.std(), scale_target=False)
    fit = svr.fit(suited, of(x, y), Context.of(0))
    assert not fit.warnings
    assert 1 - np.var(svr.predict(suited, fit.state, x) - y) / y.var() > 0.95


@pytest.mark.parametrize("unit", [3000.0, 1.0, 0.001])
def test_the_target_may_be_in_thousands(unit):
    """The same line in thousands and in thousandths: equal but for its unit, and as libsvm with C σ and ε σ."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3))
    y = x @ [2.0, -1.0, 0.5] + 0.1 * rng.normal(size=200)
    params = svr.SVR(gamma=0.2, tol=1e-8)
    fit = svr.fit(params, of(x, unit * y), Context.of(0))
    assert not fit.warnings
    theirs = svm.SVR(gamma=0.2, C=y.std(), epsilon=0.1 * y.std(), tol=1e-9).fit(x, y).predict(x)
    np.testing.assert_allclose(svr.predict(params, fit.state, x) / unit, theirs, atol=2e-5)
