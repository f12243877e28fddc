"""Fitting a function of the target: straight lines, the way back, and what errors become."""

import numpy as np
import pyarrow as pa
import pytest

from app.base.errors import InvalidData
from app.ml.algorithms import linear
from app.ml.contract.algorithm import Context, Data, Task
from app.ml.models.model import decode
from app.ml.preparation.request import Preprocessing
from app.ml.preparation.target_transform import transformed, turned_back
from tests.ml.training.test_train import run

ALL = {"test_fraction": 0}


def fit(table, how, algorithm="linear", params=None, **spec):
    preprocessing = {"scaling": "none", "target": how}
    return run(table, algorithm, params=params, target="y", preprocessing=preprocessing, validation=ALL, **spec)


def test_an_exponential_is_a_straight_line():
    """B5.4, derived: y = exp(-0.7x)."""
    x = np.array([1.0, 2, 3])
    trained = fit(pa.table({"x": x, "y": np.exp(-0.7 * x)}), "log", params={"fit_intercept": False})
    assert trained.report.summary["coefficients"] == pytest.approx([-0.7], rel=1e-14)
    assert decode(trained.blob).predict(pa.table({"x": [4.0]})).values == pytest.approx(np.exp(-2.8), rel=1e-13)


BACK = {"log": np.exp, "log1p": np.expm1, "sqrt": np.square, "square": np.sqrt, "reciprocal": np.reciprocal}


@pytest.mark.parametrize("how", BACK)
def test_every_transform_is_undone(how):
    x = np.linspace(1, 2, 30)
    table = pa.table({"x": x, "y": BACK[how](0.5 + 2 * x)})
    trained = fit(table, how)
    np.testing.assert_allclose(decode(trained.blob).predict(table).values, table["y"], rtol=1e-12)
    assert next(f for f in trained.report.train if f.name == "rmse").value < 1e-12 * table["y"].to_numpy().max()
    assert [warning for warning in trained.report.warnings if f"target's {how}" in warning]


def test_the_bias_of_turning_back_is_reported():
    """Of a lognormal target the mean is exp(σ²/2) times the median."""
    rng = np.random.default_rng(0)
    table = pa.table({"x": rng.normal(size=4000), "y": np.exp(rng.normal(size=4000))})
    (messages,) = [warning for warning in fit(table, "log").report.warnings if "turned back" in warning]
    assert float(messages.split()[-4]) == pytest.approx(np.exp(-0.5), rel=0.05)


@pytest.mark.parametrize(("how", "bad"), [("log", 0), ("log1p", -1), ("sqrt", -1), ("square", -2), ("reciprocal", 0)])
def test_targets_without_the_function_are_refused_by_row(how, bad):
    with pytest.raises(InvalidData, match="1 rows") as refusal:
        fit(pa.table({"x": [1.0, 2, 3], "y": [1.0, bad, 2.0]}), how)
    assert [fault.pointer for fault in refusal.value.faults] == ["/rows/1/y"]


def test_classes_have_no_such_functions():
    from app.base.errors import InvalidRequest

    with pytest.raises(InvalidRequest) as refusal:
        run(pa.table({"x": [1.0, 2, 3, 4], "y": list("abab")}), "ridge", target="y", preprocessing={"target": "log"})
    assert [fault.pointer for fault in refusal.value.faults] == ["/preprocessing/target"]


def test_known_errors_follow_the_function():
    """σ of log y is σ/y: weights gain y² (LION 5.1)."""
    data = Data.of(Task.REGRESSION, np.zeros((3, 1)), [1.0, 2, 4], weights=[1.0, 1, 4])
    np.testing.assert_allclose(transformed("log", data, errors_known=True).weights, [1, 4, 64])
    np.testing.assert_allclose(transformed("log", data, errors_known=False).weights, [1, 1, 4])
    with pytest.raises(InvalidData):
        transformed("sqrt", Data.of(Task.REGRESSION, np.zeros((2, 1)), [0.0, 1]), errors_known=True)


@pytest.mark.parametrize("how", BACK)
def test_ends_of_intervals_are_turned_back(how):
    rng = np.random.default_rng(1)
    x = rng.uniform(1, 2, (40, 1))
    z = 1 + 2 * x[:, 0] + 0.2 * rng.normal(size=40)
    params, data = linear.Linear(), Data.of(Task.REGRESSION, x, BACK[how](z))
    algorithm = turned_back(how, linear.ALGORITHM)
    state = linear.fit(params, transformed(how, data, errors_known=False), Context.of(0)).state
    bounds, predicted = algorithm.interval(params, state, x, 0.9), algorithm.predict(params, state, x)
    assert (bounds[:, 0] < predicted).all()
    assert (predicted < bounds[:, 1]).all()
    if how == "reciprocal":
        assert np.isinf(algorithm.interval(params, state, np.array([[-0.5]]), 0.9)).all()


def test_the_default_changes_nothing():
    assert Preprocessing().target == "none"
    assert turned_back("none", linear.ALGORITHM) is linear.ALGORITHM


@pytest.mark.parametrize(("y", "how"), [([1e200, 1.0], "none"), ([1e-200, 0.0], "none"), ([1e60, 1.0], "square")])
def test_targets_whose_squares_are_no_numbers_are_refused(y, how):
    with pytest.raises(InvalidData, match="power of ten"):
        fit(pa.table({"x": [1.0, 2.0] * 4, "y": y * 4}), how)
