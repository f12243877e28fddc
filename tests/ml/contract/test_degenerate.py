"""Poor data has a defined prediction: finite, of the right shape, and without a warning from numpy."""

import warnings

import numpy as np
import pytest

from app.ml.contract.algorithm import Task


def _varied(case, change):
    data = case.data()
    return case.of(change(np.array(data.x)), data.y)


def _constant_column(x):
    x[:, 2] = 0.1  # a number whose weighted mean is not exact
    return x


POOR = {
    "one row": lambda case: case.data(rows=1),
    "two rows": lambda case: case.data(rows=2),
    "one column": lambda case: case.data(columns=1),
    "constant column": lambda case: _varied(case, _constant_column),
    "all columns constant": lambda case: _varied(case, lambda x: np.full_like(x, 0.1)),
    "duplicate columns": lambda case: _varied(case, lambda x: x[:, [0, 0, 1, 1]]),
    "all rows the same": lambda case: _varied(case, lambda x: np.repeat(x[:1], len(x), axis=0)),
    "each row twice": lambda case: _varied(case, lambda x: np.repeat(x[: len(x) // 2], 2, axis=0)),
    "more columns than rows": lambda case: case.data(rows=6, columns=25),
    "huge numbers": lambda case: _varied(case, lambda x: x * 2.0**300),
    "tiny numbers": lambda case: _varied(case, lambda x: x * 2.0**-300),
    "huge and tiny columns": lambda case: _varied(case, lambda x: x * 2.0 ** np.array([300, 0, -300, 5])),
    "far from zero": lambda case: _varied(case, lambda x: x + 1e8),
    "large weights": lambda case: case.data(weights=np.full(60, 1e12)),
    "uneven weights": lambda case: case.data(weights=np.logspace(-9, 9, 60)),
}


@pytest.mark.parametrize("name", POOR)
def test_poor_data(case, shape_of_prediction, name):
    data = POOR[name](case)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = case.fit(data)
        shape_of_prediction(case, case.predict(fit.state, data.x), rows=len(data.x))
    if case.algorithm.summary:
        case.algorithm.summary(case.params, fit.state)


@pytest.mark.parametrize("kept", [[0], [1], [0, 2]], ids=["one class", "one class of three", "an empty class"])
def test_classes_without_rows(case, shape_of_prediction, kept):
    """A class that no row has is never the most probable one."""
    if case.task is not Task.CLASSIFICATION:
        return
    whole = case.data()
    data = whole.take(np.isin(whole.codes, kept))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        predicted = case.predict(case.fit(data).state, whole.x)
    shape_of_prediction(case, predicted, rows=len(whole.x), classes=3)
    assert set(predicted.argmax(axis=1)) <= set(kept)


def test_a_constant_target_is_predicted(case):
    if case.task is not Task.REGRESSION:
        return
    x = case.data().x
    np.testing.assert_allclose(case.predict(case.fit(case.of(x, np.full(len(x), 0.1))).state, x), 0.1, rtol=1e-9)


def test_a_single_class_is_certain(case):
    if case.task is not Task.CLASSIFICATION:
        return
    x = case.data().x
    predicted = case.predict(case.fit(case.of(x, np.zeros(len(x)), classes=1)).state, x)
    np.testing.assert_allclose(predicted, np.ones((len(x), 1)))
