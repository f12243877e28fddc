"""Rows of one group are never on both sides of a split, and the sides are as balanced as whole groups allow."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.ml.evaluation.group_splits import read_groups
from app.ml.evaluation.splits import holdout, kfold, resample

QUICK = settings(max_examples=60, deadline=None, derandomize=True, database=None)
rows_of_groups = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 2)), min_size=1, max_size=60)
seeds = st.integers(0, 5)


def drawn(rows, stratified):
    groups, codes = np.array(rows).T
    return np.unique(groups, return_inverse=True)[1], codes if stratified else None


def rng(seed=0):
    return np.random.default_rng(seed)


@QUICK
@given(rows_of_groups, st.booleans(), st.floats(0.05, 0.95), st.integers(2, 6), seeds)
def test_no_group_is_on_both_sides(rows, stratified, fraction, k, seed):
    groups, codes = drawn(rows, stratified)
    n, count = len(rows), groups.max() + 1
    folds = kfold(n, k, rng(seed), codes, groups)
    held = holdout(n, fraction, rng(seed), codes, groups)
    for split in (held, *folds, resample(n, rng(seed), groups)):
        assert not set(groups[split.train]) & set(groups[split.test])
    for split in (held, *folds):
        np.testing.assert_array_equal(np.sort(np.concatenate(split)), np.arange(n))
    assert len(folds) == (min(k, count) if count > 1 else 0)
    if folds:
        np.testing.assert_array_equal(np.sort(np.concatenate([fold.test for fold in folds])), np.arange(n))
        assert all(fold.test.size for fold in folds)


@QUICK
@given(rows_of_groups, st.floats(0.05, 0.95), seeds)
def test_every_class_is_learned_from_and_some_group_held_out_where_that_is_possible(rows, fraction, seed):
    groups, codes = drawn(rows, stratified=True)
    split = holdout(len(rows), fraction, rng(seed), codes, groups)
    assert set(codes[split.train]) == set(codes)
    spare = [g for g in set(groups) if set(codes[groups == g]) <= set(codes[groups != g])]
    assert bool(split.test.size) == bool(spare)
    assert not holdout(len(rows), 0.0, rng(seed), codes, groups).test.size


def test_sizes_and_classes_are_balanced():
    groups = rng().permutation(np.repeat(np.arange(100), rng().integers(1, 20, 100)))
    codes = (groups % 3 == 0).astype(int) * (rng(1).random(groups.size) < 0.8)
    for split in kfold(groups.size, 5, rng(), codes, groups):
        assert abs(split.test.size / groups.size - 0.2) < 0.01
        assert abs(codes[split.test].mean() - codes.mean()) < 0.02
    held = [holdout(groups.size, 0.2, rng(seed), codes, groups).test for seed in range(200)]
    assert max(abs(test.size / groups.size - 0.2) for test in held) < 0.02
    often = np.bincount(np.concatenate([np.unique(groups[test]) for test in held]), minlength=100) / 200
    assert 0.05 < often.min() < often.max() < 0.5, "any group may be held out"


def test_a_resample_draws_as_many_groups_as_there_are():
    groups = np.repeat(np.arange(4), [1, 2, 3, 4])
    split = resample(10, rng(3), groups)
    times = np.bincount(groups[split.train], minlength=4) / [1, 2, 3, 4]
    assert times.sum() == 4
    assert set(groups[split.test]) == set(np.flatnonzero(times == 0))


def test_the_seed_decides():
    groups = np.arange(60) // 3
    one, same, other = (holdout(60, 0.3, rng(seed), None, groups).test.tolist() for seed in (1, 1, 2))
    assert one == same != other


@pytest.mark.parametrize(
    "values",
    [
        ["b", None, "a", "b", None],
        [2.0, None, -0.0, 2.0, np.nan],
        [True, None, False, True, None],
        [7, None, 1, 7, None],
    ],
    ids=["texts", "floats", "truths", "integers"],
)
def test_rows_without_a_value_are_groups_of_their_own(values):
    column = pa.chunked_array([pa.array(values[:2], from_pandas=False), pa.array(values[2:], from_pandas=False)])
    codes = read_groups(pa.table({"site": column}), "site", np.arange(5))
    assert codes[0] == codes[3]
    assert sorted(set(codes.tolist())) == [0, 1, 2, 3]
