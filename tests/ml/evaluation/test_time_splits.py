"""Splits in order of time."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import TimeSeriesSplit

from app.base.errors import InvalidData
from app.ml.evaluation.time_splits import expanding, latest, read_times

TIMES = st.lists(st.integers(0, 9), min_size=1, max_size=60).map(
    lambda values: np.unique(np.array(values), return_inverse=True)[1]
)


@given(TIMES, st.floats(0, 0.99))
def test_held_out_rows_are_later_than_all_others(times, fraction):
    test = latest(times, fraction)
    train = np.setdiff1d(np.arange(times.size), test)
    assert train.size
    if test.size:
        assert times[train].max() < times[test].min()
        assert test.size <= round(fraction * times.size) or np.unique(times[test]).size == 1
    assert (test.size == 0) == (fraction == 0 or times.max() == 0)


@given(TIMES, st.integers(2, 8))
def test_folds_are_tested_by_all_that_is_earlier(times, folds):
    splits = expanding(times, folds)
    assert len(splits) <= folds
    assert bool(splits) == (times.max() > 0)
    for train, test in splits:
        assert train.size
        assert test.size
        np.testing.assert_array_equal(train, np.flatnonzero(times < times[test].min()))
    if splits:
        tested = np.concatenate([test for _, test in splits])
        assert np.unique(tested).size == tested.size
        np.testing.assert_array_equal(np.sort(tested), np.flatnonzero(times >= times[splits[0][1]].min()))


@pytest.mark.parametrize(("rows", "folds"), [(60, 5), (100, 4), (12, 3)])
def test_folds_of_times_that_differ_are_those_of_scikit_learn(rows, folds):
    order = np.random.default_rng(0).permutation(rows)
    place = np.argsort(order)
    peers = TimeSeriesSplit(folds).split(order)
    for (train, test), (theirs, others) in zip(expanding(order, folds), peers, strict=True):
        np.testing.assert_array_equal(np.sort(order[train]), theirs)
        np.testing.assert_array_equal(np.sort(order[test]), others)
        assert set(test) == set(place[others])


def test_times_are_read_of_the_rows_that_are_used():
    table = pa.table({"when": pa.array([3, 1, None, 3, 2], pa.timestamp("us", "UTC"))})
    order = read_times(table, "when", np.array([0, 1, 3, 4]))
    assert order.codes.tolist() == [2, 0, 2, 1]
    assert order.first(np.array([0, 3])).startswith("1970-01-01 00:00:00.000002")
    assert order.take(np.array([0, 2])).tolist() == [0, 0]
    with pytest.raises(InvalidData, match="Rows lack a value in 'when'"):
        read_times(table, "when", np.arange(5))
