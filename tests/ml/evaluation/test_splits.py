"""Splits are fair, seeded, and let no row evaluate a model that has learned from it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.ml.evaluation.splits import holdout, kfold

QUICK = settings(max_examples=60, deadline=None, derandomize=True, database=None)
codes_of_rows = st.lists(st.integers(0, 4), min_size=1, max_size=60).map(np.array)


def rng(seed=0):
    return np.random.default_rng(seed)


def test_stratified_folds_of_20_and_10():
    """B3.15: with 20 of A and 10 of B, K = 5, every fold has 4 A and 2 B."""
    codes = rng().permutation(np.repeat([0, 1], [20, 10]))
    folds = kfold(30, 5, rng(), codes)
    assert [np.bincount(codes[fold.test]).tolist() for fold in folds] == [[4, 2]] * 5
    assert [np.bincount(codes[fold.train]).tolist() for fold in folds] == [[16, 8]] * 5


@QUICK
@given(codes_of_rows, st.integers(2, 12), st.booleans())
def test_every_row_is_validated_exactly_once(codes, k, stratified):
    n = len(codes)
    folds = kfold(n, k, rng(), codes if stratified else None)
    assert len(folds) == (min(k, n) if n > 1 else 0)
    for fold in folds:
        np.testing.assert_array_equal(np.sort(np.concatenate(fold)), np.arange(n))
    if folds:
        np.testing.assert_array_equal(np.sort(np.concatenate([fold.test for fold in folds])), np.arange(n))
        assert np.ptp([len(fold.test) for fold in folds]) <= 1


@QUICK
@given(codes_of_rows, st.integers(2, 12))
def test_folds_share_every_class_evenly(codes, k):
    counts = [np.bincount(codes[fold.test], minlength=5) for fold in kfold(len(codes), k, rng(), codes)]
    assert not counts or np.ptp(counts, axis=0).max() <= 1


@QUICK
@given(codes_of_rows, st.floats(0.05, 0.95), st.booleans())
def test_holdout(codes, fraction, stratified):
    n = len(codes)
    split = holdout(n, fraction, rng(), codes if stratified else None)
    np.testing.assert_array_equal(np.sort(np.concatenate(split)), np.arange(n))
    assert len(split.train) >= 1
    sizes, held = np.bincount(codes), np.bincount(codes[split.test], minlength=codes.max() + 1)
    if stratified:
        assert (held[sizes > 0] < sizes[sizes > 0]).all(), "every class is learned from"
        roomy = sizes * fraction <= sizes - 1
        assert (np.abs(held - sizes * fraction)[roomy] <= 1).all()
        assert (held[sizes == 1] == 0).all()
        assert held.sum() >= (sizes > 1).any()
    elif n > 1:
        assert len(split.test) == min(max(1, round(fraction * n)), n - 1)


def test_one_row_is_learned_from():
    split = holdout(1, 0.9, rng())
    assert (split.train.tolist(), split.test.tolist()) == ([0], [])
    assert kfold(1, 5, rng()) == []


@pytest.mark.parametrize("codes", [None, np.repeat([0, 1, 2], 20)])
def test_the_seed_decides(codes):
    one, same, other = (holdout(60, 0.3, rng(seed), codes).test.tolist() for seed in (1, 1, 2))
    assert one == same != other
    one, same, other = ([fold.test.tolist() for fold in kfold(60, 4, rng(seed), codes)] for seed in (1, 1, 2))
    assert one == same != other


def test_every_row_is_held_out_equally_often():
    held = sum(np.isin(np.arange(10), holdout(10, 0.3, rng(seed)).test) for seed in range(2000))
    assert np.abs(held / 2000 - 0.3).max() < 0.05  # five standard deviations


def test_class_codes_need_not_follow_each_other():
    codes = np.repeat([3, 90], [8, 4])
    assert np.bincount(codes[holdout(12, 0.25, rng(), codes).test])[[3, 90]].tolist() == [2, 1]


def test_nothing_is_held_out_on_request():
    split = holdout(9, 0.0, rng())
    assert (split.train.tolist(), split.test.size) == (list(range(9)), 0)
