"""Residuals are reported with what is wrong with them, and the rows that are."""

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import make_regression

from app.ml.evaluation.residuals import LISTED, TESTED, residuals


def rng(seed=0):
    return np.random.default_rng(seed)


def described(values):
    return residuals("test", np.arange(len(values)) + 1000, np.asarray(values, float))


def test_of_the_book():
    """B5.10: A² = 0.1293204 of the ten residuals, sum −0.0 of them removed."""
    found = described([-1.2, -0.7, -0.3, -0.25, -0.1, 0.05, 0.2, 0.4, 0.8, 1.1])
    tests = {test.name: test for test in found.normality}
    assert tests["anderson-darling"].statistic == pytest.approx(0.1293204, abs=5e-8)
    assert tests["dagostino-k2"].p_value is None
    assert (found.outliers, found.normality_without_outliers) == (0, None)
    assert found.five_numbers == pytest.approx([-1.2, -0.2875, -0.025, 0.35, 1.1])
    assert found.reading.startswith("No evidence against")


def test_outliers_are_named_largest_first_and_can_be_left_out():
    values = rng().normal(size=60)
    values[[7, 30]] = [9.0, -14.0]
    found = described(values)
    assert (found.outliers, found.outlier_rows) == (2, [1030, 1007])
    assert found.normality[0].p_value < 1e-5
    assert found.normality_without_outliers[0].p_value > 0.05
    assert found.reading.startswith("The residuals are not normal")
    assert found.standard_deviation == pytest.approx(values.std(ddof=1), rel=1e-12)


def test_whiskers_are_those_of_a_box_plot():
    """B5.16: of normal values 0.6977 % are beyond 1.5 interquartile ranges, 2.698 standard deviations out."""
    assert stats.norm.ppf(0.75) * 4 == pytest.approx(2.697959, abs=5e-7)
    assert 2 * stats.norm.cdf(2.697959) - 1 == pytest.approx(0.9930234, abs=5e-8)
    found = described(rng(1).normal(size=20_000))
    assert found.outliers / 20_000 == pytest.approx(1 - 0.9930234, abs=3e-3)
    assert len(found.outlier_rows) == LISTED


@pytest.mark.parametrize("values", [[2.0], [0.0] * 50, [1.0, 2.0]])
def test_too_few_or_all_alike(values):
    found = described(values)
    assert [test.p_value for test in found.normality] == [None] * 3
    assert found.outlier_rows == []
    assert found.reading.startswith("Too few")
    assert (found.standard_deviation is None) == (len(values) == 1)


def test_nothing_is_reported_of_no_rows_or_wild_predictions():
    assert described([]) is None
    assert described([1.0, np.inf]) is None


def test_many_are_sampled_evenly():
    values = np.append(rng().normal(size=TESTED), rng(1).exponential(size=3 * TESTED))
    assert described(values).normality[0].p_value < 1e-10


def test_the_report_of_a_regression_looks_at_both_parts(report_of):
    x, y = make_regression(80, 1, noise=5, random_state=0)
    y[3] += 1e4
    report = report_of({"a": x[:, 0], "y": y, "w": np.where(np.arange(80) % 2, 4.0, 1.0)}, target="y", weights="w")
    assert [part.part for part in report.residuals] == ["train", "test"]
    assert [part.rows for part in report.residuals] == [64, 16]
    assert 3 in [row for part in report.residuals for row in part.outlier_rows]
    curves = {curve.name: curve for curve in report.curves}
    assert len(curves["fit"].x) == 200
    slope = np.diff(curves["fit"].y) / np.diff(curves["fit"].x)
    np.testing.assert_allclose(slope, slope[0], rtol=1e-9)
    assert len(curves["observed"].x) == 16
    pairs = zip(curves["observed over predicted"].y, curves["observed over predicted"].x, strict=True)
    np.testing.assert_allclose(curves["residual over predicted"].y, [y - x for y, x in pairs])


def test_classes_have_no_residuals(report_of):
    report = report_of({"a": np.arange(40.0), "y": np.repeat([0.0, 1.0], 20)}, target="y", task="classification")
    assert report.residuals == []


def test_a_range_may_be_wider_than_a_number(report_of):
    a = np.array([1.7e308, -1.7e308] * 10)
    report = report_of({"a": a, "y": np.sign(a)}, target="y", algorithm={"name": "decision_tree"})
    curve = next(curve for curve in report.curves if curve.name == "fit")
    assert (curve.x[0], curve.x[-1]) == (-1.7e308, 1.7e308)
