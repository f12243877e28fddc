"""Weighted rows, and rows of groups that are alike: as many rows as they are worth, and shares of them."""

import numpy as np
import pytest
from scipy import stats

from app.ml.numerics.effective_rows import effective_rows
from app.ml.statistics.intervals import Resamples, clopper_pearson
from app.ml.statistics.resampling import Rows


def test_each_class_counts_as_many_rows_as_its_weights_are_worth():
    rng = np.random.default_rng(0)
    codes, weights = rng.integers(0, 4, 60), rng.uniform(0.1, 9, 60)
    rows = Rows(Resamples.of(60, rng), weights)
    expected = [weights[codes == code].sum() ** 2 / (weights[codes == code] ** 2).sum() for code in range(4)]
    assert rows.worths(rows.tally(codes, 4)) == pytest.approx(expected)
    assert rows.worth() == int(effective_rows(weights))


def test_tiny_weights_are_worth_as_much_as_large_ones():
    """Squares of weights of 1e-200 are 0; what they are worth is not."""
    rows = Rows(Resamples.of(3, np.random.default_rng(0)), np.array([1e-200, 1e-200, 3.0]))
    assert rows.worths(rows.tally(np.array([0, 0, 2]), 3)).tolist() == [2, 0, 1]


def test_rows_that_are_copies_are_worth_as_much_as_one():
    """A share of 30 cases, each five times in a group of its own, has about the interval of 30 rows."""
    right, groups = np.repeat(np.arange(30) < 12, 5), np.repeat(np.arange(30), 5)
    rows = Rows(Resamples.of(150, np.random.default_rng(0), groups))
    share = rows.share("accuracy", rows.tally(right - 1, 1), rows.tally(np.zeros(150, np.intp), 1))
    worth = 29 * (stats.t.ppf(0.975, 149) / stats.t.ppf(0.975, 29)) ** 2  # few groups show their variance poorly
    assert (share.lower, share.upper) == pytest.approx(clopper_pearson(0.4 * worth, worth), rel=1e-9)
    assert rows.worth() == 30


def test_a_share_of_all_or_nothing_rests_on_the_groups():
    groups = np.repeat(np.arange(8), 4)
    rows = Rows(Resamples.of(32, np.random.default_rng(0), groups))
    whole = rows.tally(np.zeros(32, np.intp), 1)
    assert rows.share("accuracy", whole, whole).lower == pytest.approx(clopper_pearson(8, 8).lower)
