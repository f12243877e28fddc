"""Reliability curves and the expected calibration error against scikit-learn, a definition and a known truth."""

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, log_loss

from app.ml.evaluation.reliability import MOST_CLASSES, Bins, class_reliability, reliability
from app.ml.statistics.calibration_error import Gaps, calibration_error
from app.ml.statistics.intervals import Resamples
from app.ml.statistics.resampling import Rows


def drawn(rng, rows, slope):
    """Probabilities, and classes whose log odds are `slope` times those of the probabilities."""
    p = rng.random(rows)
    share = p**slope / (p**slope + (1 - p) ** slope)
    return p, (rng.random(rows) < share).astype(np.intp)


def measured(p, y, weights=None, **bins):
    counted = Rows(Resamples.of(y.size, np.random.default_rng(0)), weights)
    return reliability(y, np.column_stack([1 - p, p]), ("no", "yes"), counted, Bins(**bins))


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_curves_and_metrics_are_those_of_scikit_learn(strategy):
    p, y = drawn(np.random.default_rng(1), 700, 0.5)
    found = measured(p, y, n_bins=8, strategy=strategy)
    (curve,) = found.curves
    shares, means = calibration_curve(y, p, n_bins=8, strategy=strategy)
    np.testing.assert_allclose([one.mean_probability for one in curve.bins], means, rtol=1e-12)
    np.testing.assert_allclose([one.observed_share.value for one in curve.bins], shares, rtol=1e-12)
    assert sum(one.rows for one in curve.bins) == 700
    assert all(one.observed_share.lower < one.observed_share.value < one.observed_share.upper for one in curve.bins)
    values = {metric.name: metric.value for metric in found.metrics}
    weights = np.array([one.rows for one in curve.bins]) / 700
    assert values["expected_calibration_error"] == pytest.approx(weights @ np.abs(shares - means), rel=1e-12)
    assert values["log_loss"] == pytest.approx(log_loss(y, p), rel=1e-12)
    assert values["brier"] == pytest.approx(brier_score_loss(y, p), rel=1e-12)


def test_rows_of_a_whole_weight_count_as_so_many_rows():
    p, y = drawn(np.random.default_rng(5), 300, 0.5)
    weights = np.random.default_rng(6).integers(1, 5, 300)
    one, many = measured(p, y, weights * 1.0), measured(np.repeat(p, weights), np.repeat(y, weights))
    for ours, theirs in zip(one.metrics, many.metrics, strict=True):
        assert ours.value == pytest.approx(theirs.value, rel=1e-12)
        assert ours.lower < ours.value < ours.upper
        assert ours.upper - ours.lower > theirs.upper - theirs.lower, "300 rows are known less well than 750"
    for ours, theirs in zip(one.curves[0].bins, many.curves[0].bins, strict=True):
        assert ours.mean_probability == pytest.approx(theirs.mean_probability, rel=1e-12)
        assert ours.observed_share.value == pytest.approx(theirs.observed_share.value, rel=1e-12)
        assert ours.observed_share.lower < ours.observed_share.upper
    assert sum(one.rows for one in one.curves[0].bins) == 300


def test_of_three_classes_the_error_is_the_mean_over_them():
    rng = np.random.default_rng(2)
    p = rng.dirichlet(np.ones(3), 400)
    y = rng.integers(0, 3, 400)
    found = reliability(y, p, ("a", "b", "c"), Rows(Resamples.of(400, rng)), Bins())
    assert [curve.label for curve in found.curves] == ["a", "b", "c"]
    errors = [curve.expected_calibration_error.value for curve in found.curves]
    assert found.metrics[0].value == pytest.approx(np.mean(errors), rel=1e-12)
    assert found.metrics[0].lower > 0


def test_a_higher_confidence_widens_every_interval():
    p, y = drawn(np.random.default_rng(3), 300, 0.5)
    narrow, wide = measured(p, y, confidence=0.8), measured(p, y, confidence=0.99)
    pairs = [*zip(narrow.metrics, wide.metrics, strict=True)]
    pairs += [
        (a.observed_share, b.observed_share) for a, b in zip(narrow.curves[0].bins, wide.curves[0].bins, strict=True)
    ]
    for one, other in pairs:
        assert (one.confidence, other.confidence) == (0.8, 0.99)
        assert other.upper - other.lower > one.upper - one.lower


def test_rows_in_one_bin_and_rows_without_error_have_a_defined_error():
    everywhere = measured(np.full(50, 0.3), np.repeat([0, 1], 25), strategy="quantile")
    assert everywhere.metrics[0].value == pytest.approx(0.2, rel=1e-12)
    perfect = measured(np.repeat([0.0, 1.0], 25), np.repeat([0, 1], 25))
    assert (perfect.metrics[0].value, perfect.metrics[0].lower) == (0.0, None)


def test_without_draws_the_error_has_no_interval():
    p, y = drawn(np.random.default_rng(9), 60, 0.5)
    found = reliability(y, np.column_stack([1 - p, p]), ("no", "yes"), Rows(Resamples.none(60)), Bins())
    assert found.metrics[0].value == measured(p, y).metrics[0].value
    assert (found.metrics[0].lower, found.metrics[0].upper) == (None, None)


@pytest.mark.parametrize(("slope", "rows", "least"), [(1.0, 300, 0.9), (0.5, 300, 0.9), (0.8, 700, 0.9)])
def test_intervals_hold_the_error_of_the_model(slope, rows, least):
    """The error of these bins for all rows there are, of calibrated probabilities and of such that are too sure."""
    rng, edges = np.random.default_rng(4), Bins().edges(np.zeros(0))

    def gaps(p, left, draws):
        return Gaps.of(left, np.searchsorted(edges[1:-1], p), 10, Rows(draws))

    p = (np.arange(200_000) + 0.5) / 200_000
    whole = gaps(p, p**slope / (p**slope + (1 - p) ** slope) - p, Resamples.none(p.size))
    truth, held = np.abs(whole.found).sum(), []
    for _ in range(40):
        p, y = drawn(rng, rows, slope)
        found = calibration_error([gaps(p, y - p, Resamples.of(rows, rng))], rows)
        held.append(found.lower <= truth <= found.upper)
    assert np.mean(held) >= least


def test_the_most_frequent_of_many_classes_have_a_curve_each_in_their_order():
    rng = np.random.default_rng(8)
    p = rng.dirichlet(np.ones(14), 300)
    y = np.append(np.tile(np.arange(1, 14), 23), [13])
    p, counted = p[: y.size], Rows(Resamples.of(y.size, rng))
    found = class_reliability(y, p, list("abcdefghijklmn"), counted, Bins())
    assert [curve.label for curve in found] == list("bcdefghijn")
    assert len(found) == MOST_CLASSES
    shares, means = calibration_curve(y == 1, p[:, 1], n_bins=10)
    assert [one.observed_share.value for one in found[0].bins] == pytest.approx(shares.tolist())
    assert [one.mean_probability for one in found[0].bins] == pytest.approx(means.tolist())
