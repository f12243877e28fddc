"""Paired differences of metrics: the intervals of scipy for means, coverage for RMSE, and results without a spread."""

import numpy as np
import pytest
from scipy import stats

from app.ml.evaluation.paired_differences import better, difference, with_draws
from app.ml.statistics.intervals import Resamples
from app.ml.statistics.resampling import Rows


def compared(name, one, other, seed=0):
    rows = Rows(Resamples.of(one.size, np.random.default_rng(seed)))
    return difference(name, *(with_draws(name, values, rows) for values in (one, other)), one.size)


def test_the_difference_of_means_has_the_interval_of_the_paired_t_test():
    rng = np.random.default_rng(1)
    hard = rng.gamma(2.0, 1.0, 400)
    one, other = hard + 0.1 * rng.normal(size=400), hard + 0.1 * rng.normal(size=400) + 0.02
    found = compared("log_loss", one, other)
    expected = stats.ttest_1samp(one - other, 0).confidence_interval(0.95)
    assert found.value == pytest.approx((one - other).mean(), rel=1e-12)
    assert (found.lower, found.upper) == pytest.approx((expected.low, expected.high), abs=0.1 * np.ptp(expected))
    assert better("log_loss", found) == 0
    alone = stats.ttest_1samp(one, 0).confidence_interval(0.95)
    assert found.upper - found.lower < 0.2 * (alone.high - alone.low)


def test_the_difference_of_rmse_is_antisymmetric_and_has_its_units():
    rng = np.random.default_rng(2)
    one, other = np.abs(rng.normal(size=90)), np.abs(1.3 * rng.normal(size=90))
    found, back, scaled = (
        compared("rmse", one, other),
        compared("rmse", other, one),
        compared("rmse", 1e3 * one, 1e3 * other),
    )
    assert found.value == pytest.approx(np.sqrt(np.mean(one**2)) - np.sqrt(np.mean(other**2)), rel=1e-12)
    assert back.value == pytest.approx(-found.value)
    assert scaled.lower == pytest.approx(1e3 * found.lower)
    assert (better("rmse", found), better("rmse", back)) == (0, 1)


def test_intervals_cover_the_difference_of_correlated_errors():
    """Of 200 samples of 80 rows, at least 88 % of 95 % intervals cover."""
    rng, hits = np.random.default_rng(3), 0
    for seed in range(200):
        noise, own = rng.normal(size=80), rng.normal(size=(2, 80))
        found = compared("rmse", np.abs(noise + 0.3 * own[0]), np.abs(noise + 0.6 * own[1]), seed)
        hits += found.lower <= np.sqrt(1.09) - np.sqrt(1.36) <= found.upper
    assert 176 <= hits <= 199


@pytest.mark.parametrize("name", ["rmse", "log_loss", "accuracy"])
def test_equal_predictions_differ_by_nothing_without_an_interval(name):
    values = np.arange(40.0) % 2
    found = compared(name, values, values)
    assert (found.value, found.lower, found.upper, better(name, found)) == (0.0, None, None, None)
    assert compared(name, np.zeros(40), np.zeros(40)).value == 0.0


def test_accuracy_is_better_where_it_is_higher():
    hits, misses = np.ones(60), (np.arange(60) % 3 > 0).astype(float)
    assert better("accuracy", compared("accuracy", hits, misses)) == 0
    assert better("accuracy", compared("accuracy", misses, hits)) == 1


def test_errors_beyond_all_numbers_leave_the_difference_undefined():
    one = np.array([1.0, np.inf, 2.0])
    assert compared("rmse", one, one).value is None
    assert compared("rmse", np.array([1e200, 0.0]), np.array([0.0, 1e200])).value == 0.0
