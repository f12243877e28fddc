"""The studentised bootstrap of a ratio equals that of a loop over draws, and is Student's t where nothing is skewed."""

import numpy as np
import pytest
from scipy import stats

from app.ml.statistics.intervals import RESAMPLES, Resamples
from app.ml.statistics.studentised_ratios import MAX_QUANTILE, log_ratio


def rng(seed=0):
    return np.random.default_rng(seed)


def counts(n):
    return Resamples.of(n, rng()).counts[:RESAMPLES]


def logarithm(above, below):
    """The logarithm of the ratio with its standard error, by the derivatives of each row."""
    pulls = above / above.sum() - below / below.sum()
    return np.log(above.sum() / below.sum()), np.sqrt((pulls**2).sum())


def test_it_is_the_bootstrap_of_repeated_rows():
    above, below = rng(1).gamma(3, size=25), rng(2).gamma(3, size=25)
    value, error = logarithm(above, below)
    drawn = [logarithm(np.repeat(above, each.astype(int)), np.repeat(below, each.astype(int))) for each in counts(25)]
    t = np.array([(log - value) / spread for log, spread in drawn])
    low, high = np.quantile(t, [0.025, 0.975])
    lower, upper = log_ratio(above, below, counts(25))
    least = np.sqrt(25 / 24) * stats.t.ppf(0.975, 24)
    assert lower == pytest.approx(value - error * max(high, least), rel=1e-9)
    assert upper >= value + error * max(-low, least) - 1e-12  # further where one row dominates


def test_without_skewness_it_is_students():
    values = np.exp(rng(3).normal(scale=0.02, size=500))
    lower, upper = log_ratio(values, np.ones(500), counts(500))
    centre, error = logarithm(values, np.ones(500))
    reach = error * stats.t.ppf(0.975, 499)
    assert (centre - lower, upper - centre) == pytest.approx((reach, reach), rel=0.12)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_units_do_not_matter(scale):
    values, ones = rng(4).gamma(2, size=40), np.ones(40)
    moved = np.subtract(log_ratio(values * scale, ones, counts(40)), np.log(scale))
    np.testing.assert_allclose(moved, log_ratio(values, ones, counts(40)), rtol=1e-9)


def test_one_row_that_dominates_widens_the_upper_end():
    even, odd = np.tile([1.0, 2.0], 25), np.append(np.tile([1.0, 2.0], 25)[:-1], 40.0)
    arms = []
    for values in (even, odd):
        lower, upper = log_ratio(values, np.ones(50), counts(50))
        centre, error = logarithm(values, np.ones(50))
        arms.append(((centre - lower) / error, (upper - centre) / error))
    assert arms[0] == pytest.approx((2.03, 2.03), abs=0.25)
    assert arms[1][1] == pytest.approx(MAX_QUANTILE)


@pytest.mark.parametrize("values", [[], [3.0], [0.0, 0.0], [2.0, 2.0, 2.0], [1.0, np.inf]])
def test_nothing_is_bounded_by_rows_that_show_nothing(values):
    above = np.array(values)
    assert log_ratio(above, np.ones(above.size), counts(max(1, above.size))) is None
