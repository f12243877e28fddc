"""Intervals equal the published ones, and hold what they promise."""

import numpy as np
import pytest
from scipy import stats

from app.ml.statistics.intervals import (
    GROUPS,
    RESAMPLES,
    Bounds,
    Resamples,
    _acceleration,
    accelerated,
    clopper_pearson,
    percentile,
    ratio,
    student_t,
)
from app.ml.statistics.metric_value import bootstrapped, fold_mean, metric, proportion, rounded


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("trials", [1, 2, 10, 101])
def test_clopper_pearson_is_scipys_exact_interval(trials):
    for successes in range(trials + 1):
        for confidence in (0.5, 0.95, 0.999):
            ours = clopper_pearson(successes, trials, confidence)
            theirs = stats.binomtest(successes, trials).proportion_ci(confidence, method="exact")
            np.testing.assert_allclose(ours, (theirs.low, theirs.high), atol=1e-12)


def test_clopper_pearson_by_its_definition():
    """At the lower bound so many successes or more have probability 2.5 %; at the upper so many or fewer."""
    lower, upper = clopper_pearson(8, 10)
    assert stats.binom.sf(7, 10, lower) == pytest.approx(0.025)
    assert stats.binom.cdf(8, 10, upper) == pytest.approx(0.025)


def test_no_trials_no_interval():
    assert clopper_pearson(0, 0) is None
    assert student_t(np.array([1.0])) is None
    assert percentile(np.full(RESAMPLES, np.nan)) is None


@pytest.mark.parametrize("share", [0.03, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("trials", [5, 30])
def test_clopper_pearson_covers_at_least_what_it_says(share, trials):
    """No simulation needed: the coverage is a finite sum."""
    bounds = [clopper_pearson(successes, trials) for successes in range(trials + 1)]
    covering = [low <= share <= high for low, high in bounds]
    assert stats.binom.pmf(np.arange(trials + 1), trials, share)[covering].sum() >= 0.95


def test_student_t_is_scipys():
    values = rng().normal(size=7)
    theirs = stats.t.interval(0.95, 6, values.mean(), stats.sem(values))
    np.testing.assert_allclose(student_t(values), theirs, rtol=1e-10)


def test_acceleration_of_a_mean_is_its_skewness():
    """Efron (1987), eq. 7.4: a = skewness/(6√n)."""
    values = rng().exponential(size=30)
    left_out = (values.sum() - values) / 29
    assert _acceleration(left_out) == pytest.approx(stats.skew(values) / (6 * np.sqrt(30)), rel=1e-12)
    assert _acceleration(np.full(5, 0.1)) == 0.0


def test_without_bias_and_skewness_the_percentiles_are_students():
    replicates, left_out = np.linspace(-1, 1, 10_001), np.array([-1.0, 1.0] * 10)
    lower, upper = accelerated(0.0, replicates, left_out)
    assert upper == pytest.approx(2 * stats.norm.cdf(stats.t.ppf(0.975, 19) * np.sqrt(20 / 19)) - 1, abs=1e-3)
    assert lower == pytest.approx(-upper, abs=1e-12)


def test_many_rows_are_scipys_accelerated_interval():
    values = rng(3).exponential(size=900)
    resamples = Resamples.of(900, rng(4))
    replicates = resamples.sums(values) / resamples.size()
    ours = accelerated(values.mean(), replicates[:RESAMPLES], replicates[RESAMPLES:])
    theirs = stats.bootstrap((values,), np.mean, method="BCa", n_resamples=4000, rng=rng(5)).confidence_interval
    np.testing.assert_allclose(ours, theirs, atol=0.1 * np.ptp(theirs))


def test_percentiles_hold_the_median_not_the_mean():
    """Erratum E7: an interval of percentiles is not centred on the average, which may lie outside of it."""
    replicates = np.append(np.zeros(990), np.full(10, 1e6))
    lower, upper = percentile(replicates)
    assert lower <= np.median(replicates) <= upper < replicates.mean()
    assert percentile(np.arange(1001.0), 0.9) == pytest.approx((50, 950))


def test_replicates_have_the_spread_of_the_mean():
    values = rng(1).normal(size=400)
    resamples = Resamples.of(400, rng(2))
    replicates = (resamples.sums(values) / resamples.size())[:RESAMPLES]
    assert replicates.mean() == pytest.approx(values.mean(), abs=4 * values.std() / np.sqrt(400 * RESAMPLES))
    assert replicates.std() == pytest.approx(values.std() / 20, rel=0.1)


def test_many_rows_are_drawn_in_groups_with_the_same_spread():
    n = 20 * GROUPS + 7
    values = np.sort(rng(1).exponential(size=n))  # sorted, so that groups of neighbours would go wrong
    resamples = Resamples.of(n, rng(2))
    assert resamples.counts.shape == (RESAMPLES + GROUPS, GROUPS)
    replicates = (resamples.sums(values) / resamples.size())[:RESAMPLES]
    assert replicates.std() == pytest.approx(values.std() / np.sqrt(n), rel=0.15)
    assert resamples.size().mean() == pytest.approx(n, rel=1e-3)


@pytest.mark.parametrize(("n", "share"), [(10, 0.3486784), (50, 0.3641697), (100, 0.3660323), (1000, 0.3676954)])
def test_a_draw_leaves_out_as_many_rows_as_it_should(n, share):
    """B5.13: P(case absent) = (1 - 1/N)^N, of which four standard deviations are 0.016/√N."""
    assert (1 - 1 / n) ** n == pytest.approx(share, abs=5e-8)
    absent = (Resamples.of(n, rng()).counts[:RESAMPLES] == 0).mean()
    assert absent == pytest.approx(share, abs=4 * 0.5 / np.sqrt(RESAMPLES * n))


def test_groups_of_rows_that_are_alike_are_drawn_as_wholes():
    groups = rng(1).integers(0, 7, 50)
    resamples, values = Resamples.of(50, rng(), groups), rng(2).normal(size=50)
    totals = [values[groups == group].sum() for group in range(7)]
    np.testing.assert_allclose(resamples.units(values), totals)
    np.testing.assert_allclose(resamples.sums(values), resamples.counts @ totals)
    assert resamples.counts.shape == (RESAMPLES + 7, 7)


def test_many_groups_are_dealt_into_as_many_as_rows_would_be():
    groups = np.repeat(np.arange(5 * GROUPS), 2)
    dealt = Resamples.of(groups.size, rng(), groups).group
    np.testing.assert_array_equal(dealt[::2], dealt[1::2])
    np.testing.assert_array_equal(np.bincount(dealt), np.full(GROUPS, 10))


def test_ratio_is_undefined_not_zero():
    np.testing.assert_array_equal(ratio([0.0, 1.0, 0.0], [0.0, 2.0, 3.0]), [np.nan, 0.5, 0.0])


@pytest.mark.parametrize(
    ("value", "lower", "upper", "shown"),
    [
        (182.326548435054, 182.2265, 182.4265, "182.3 ± 0.1"),  # B5.14
        (0.918, 0.477, 562.6, "0.9 (0.5 to 600)"),
        (0.04, -1.0, 9.0, "0.04 (-1 to 9)"),
        (0.0, -1.0, 9.0, "0 (-1 to 9)"),
        (2e-9, -1e-9, 3e4, "2e-09 (-1e-09 to 3e+04)"),
        (0.96667, 0.8278, 0.9992, "0.97 (0.83 to 1.00)"),
        (1234.5, 1204.5, 1264.5, "1230 ± 30"),
        (0.5, 0.404, 0.596, "0.5 ± 0.1"),
        (12.0, 12.0, 12.0, "12"),
        (1.23456e-9, 1.2e-9, 1.28e-9, "1.23e-09 ± 4e-11"),
        (4.5678e9, 4.5e9, 4.64e9, "4.57e+09 ± 7e+07"),
        (-0.04, -0.34, 0.26, "0.0 ± 0.3"),
    ],
)
def test_digits_by_the_error_bar(value, lower, upper, shown):
    assert rounded(value, lower, upper) == shown


def test_metrics_say_what_they_rest_on():
    result = proportion("accuracy", 9, 10)
    assert (result.value, result.n, result.interval, result.confidence) == (0.9, 10, "clopper-pearson", 0.95)
    assert result.lower < 0.9 < result.upper
    empty = proportion("precision", 0, 0, label="a")
    assert (empty.value, empty.lower, empty.upper, empty.display, empty.label) == (None, None, None, "undefined", "a")


def test_one_row_has_no_bootstrap():
    result = bootstrapped("mae", 2.0, np.full(RESAMPLES, 2.0), n=1)
    assert (result.value, result.lower, result.interval, result.display) == (2.0, None, None, "2")


def test_what_is_not_finite_is_undefined():
    assert metric("rmse", np.inf, Bounds(0, np.inf), "bootstrap", n=3, label=None).value is None
    assert metric("rmse", 1.0, Bounds(0, np.inf), "bootstrap", n=3, label=None).upper is None


def test_bounds_end_where_the_measure_ends():
    result = fold_mean("accuracy", np.array([0.9, 1.0, 1.0]))
    assert (result.upper, result.n, result.interval) == (1.0, 3, "student-t (approximate)")
    assert fold_mean("rmse", np.array([0.1, 2.0])).lower == 0.0
    assert fold_mean("r2", np.array([0.1, -9.0])).lower < -9
