"""One more batch: the prediction is defined and repeatable whatever the rows before, the old state left alone."""

import copy
import warnings

import numpy as np
import pytest

from app.ml.contract.algorithm import Context, Task
from app.ml.models import state_format

BATCHES = {
    "like those before": lambda case: case.data(rows=30, seed=2),
    "one row": lambda case: case.data(rows=1, seed=2),
    "one class": lambda case: case.data(rows=30, seed=2).take(np.arange(30) % 3 == 1),
    "constant columns": lambda case: case.of(np.full((30, 4), 0.1), case.data(rows=30).y),
    "huge numbers": lambda case: case.of(case.data(rows=30).x * 2.0**300, case.data(rows=30).y),
}


def updated(case, state, data, seed=3):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return case.algorithm.update(case.params, state, data, Context.of(seed))


@pytest.mark.parametrize("name", BATCHES)
def test_one_more_batch(case, same_bytes, shape_of_prediction, name):
    if case.algorithm.update is None:
        return
    data = BATCHES[name](case)
    for first in (case.data(), case.data(rows=1)):
        state = case.fit(first).state
        before = copy.deepcopy(state)
        one, other = (updated(case, state, data) for _ in range(2))
        same_bytes(state, before)
        same_bytes(one.state, other.state)
        assert type(one.state) is case.algorithm.state
        assert all(np.isfinite(value).all() for value in one.curves.values())
        classes = 3 if case.task is Task.CLASSIFICATION else None
        shape_of_prediction(case, case.predict(one.state, case.data(rows=9, seed=5).x), 9, classes)


def test_a_stored_state_learns_on(case, same_bytes):
    if case.algorithm.update is None:
        return
    state = case.fit(case.data()).state
    arrays = {}
    packed = state_format.pack(state, "state", arrays)
    for array in arrays.values():
        array.setflags(write=False)
    again = state_format.unpack(case.algorithm.state, packed, arrays)
    data = case.data(rows=30, seed=2)
    same_bytes(updated(case, again, data).state, updated(case, state, data).state)


def test_batches_teach(case):
    """From the first sixty rows alone, then batch after batch, the predictions get about as good as the whole's."""
    if case.algorithm.update is None:
        return
    data, query = case.data(rows=600), case.data(rows=600)
    state = case.fit(data.take(np.arange(60))).state
    for _ in range(5):
        for start in range(60, 300, 30):
            state = updated(case, state, data.take(np.arange(start, start + 30))).state
    predicted = case.predict(state, query.x[300:])
    if case.task is Task.CLASSIFICATION:
        assert (predicted.argmax(axis=1) == query.codes[300:]).mean() > 0.7
    if case.task is Task.REGRESSION:
        assert ((predicted - query.y[300:]) ** 2).mean() < 0.3 * query.y[300:].var()
