"""The additive model beside penalised splines of other libraries, and its limits."""

import numpy as np
import pytest
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer

from app.ml import nested
from app.ml.algorithms import additive
from app.ml.catalogue import find
from app.ml.contract.algorithm import Data, Inputs, Size, Task


def splines(x, y):
    knots = SplineTransformer(n_knots=10, knots="quantile", extrapolation="linear")
    return make_pipeline(knots, RidgeCV(np.logspace(-3, 4, 15))).fit(x, y)


@pytest.mark.parametrize("tails", [False, True])
def test_it_is_no_worse_than_ridge_regression_of_splines(tails):
    """RMSE on new rows, of eight drawn tables. Trees by backfitting were behind on all."""
    ours, theirs = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        z = rng.normal(size=(2000, 6))
        mean = 0.6 * z[:, 0] + 0.5 * np.sin(2 * z[:, 1]) + 0.3 * z[:, 2] ** 2 + 0.4 * (z[:, 5] > 0)
        x = np.exp(z) if tails else z
        x[:, 5], y = z[:, 5] > 0, mean + 0.5 * rng.normal(size=2000)
        params, data = additive.Additive(), Data.of(Task.REGRESSION, x[:1000], y[:1000])
        state = additive.fit(params, data, nested.context(0)).state
        ours.append(np.sqrt(np.mean((additive.predict(params, state, x[1000:]) - mean[1000:]) ** 2)))
        theirs.append(np.sqrt(np.mean((splines(x[:1000], y[:1000]).predict(x[1000:]) - mean[1000:]) ** 2)))
    assert np.mean(ours) < np.mean(theirs)
    assert np.mean(ours) < 0.15


def test_what_columns_add_is_the_prediction():
    x = np.random.default_rng(0).normal(size=(100, 3))
    params, data = additive.Additive(), Data.of(Task.REGRESSION, x, np.sin(x[:, 0]) + 5)
    state = additive.fit(params, data, nested.context(0)).state
    for row, value in zip(additive.explain(params, state, x), additive.predict(params, state, x), strict=True):
        assert row["mean"] + sum(part["value"] for part in row["adds"]) == pytest.approx(value, rel=1e-12)


def test_a_table_too_wide_for_splines_is_a_fault_before_any_row_is_read():
    params, algorithm = additive.Additive(), find("additive").algorithm
    for columns, codes in ((4000, []), (4001, ["too_wide"])):
        found = nested.faults(algorithm, params, Task.REGRESSION, "/algorithm", Inputs({}, Size(100, columns)))
        assert [fault.code for fault in found] == codes
