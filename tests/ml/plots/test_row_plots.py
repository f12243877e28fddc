"""Plots of rows: ellipses at the quantile of χ², which rows and groups are drawn, bins to one side of a threshold."""

from itertools import pairwise

import numpy as np
import pytest
import scipy

from app.ml.charts.normal_ellipse import normal_ellipse
from app.ml.charts.row_groups import order_of, row_groups
from app.ml.evaluation.row_sample import RowAxis, RowSample
from app.ml.operations import plot_entries
from app.ml.plots.anomaly_histogram import ANOMALIES
from tests.ml.plots.test_plots import column, drawn_from, rows, tables

THREE = "length,width,petal length"


def drawing(of, name):
    return plot_entries()[name].plot.draw(of)


def titles(of):
    encoding = drawing(of, "projection_scatter").view["encoding"]
    return [encoding[axis]["title"] for axis in ("x", "y")]


def resampled(of, **changed):
    """The subject with another sample."""
    sample = of.report.row_sample.model_copy(update=changed)
    return of._replace(report=of.report.model_copy(update={"row_sample": sample}))


@pytest.mark.parametrize("unit", [1.0, 1e200, 1e-200])
def test_an_ellipse_lies_at_the_quantile_of_chi_square(unit):
    points = np.random.default_rng(1).normal(size=(40, 2)) @ np.array([[2.0, 1.0], [0.0, 0.5]]) + [3, -1]
    gaps = normal_ellipse(points * unit) / unit - points.mean(axis=0)
    squares = np.einsum("ni,ij,nj->n", gaps, np.linalg.inv(np.cov(points.T)), gaps)
    assert squares == pytest.approx(np.full(61, scipy.stats.chi2(2).ppf(0.95)))
    assert gaps[0] == pytest.approx(gaps[-1])


def test_few_rows_have_no_ellipse_and_equal_ones_a_point():
    assert normal_ellipse(np.eye(2)).shape == (0, 2)
    assert normal_ellipse(np.full((5, 2), 7.0)) == pytest.approx(np.full((61, 2), 7.0))


def test_a_scatter_has_the_coordinates_of_the_sample_and_an_ellipse_for_each_class():
    of = drawn_from("flowers", "lda", "species")
    outlines, points = (rows(of, "projection_scatter", layer) for layer in (0, 1))
    assert [row["row"] for row in points] == of.report.row_sample.rows
    assert column(points, "x").tolist() == of.report.row_sample.axes[0].values
    assert [row["series"] for row in points] == of.report.row_sample.classes
    for name in set(of.report.row_sample.classes):
        own = np.array([[row["x"], row["y"]] for row in points if row["series"] == name])
        drawn = np.array([[row["x"], row["y"]] for row in outlines if row["series"] == name])
        assert drawn == pytest.approx(normal_ellipse(own))


def test_axes_name_the_share_of_the_variance_of_the_separation_or_the_column():
    ratio = drawn_from("flowers", "pca").report.summary["explained_variance_ratio"]
    assert titles(drawn_from("flowers", "pca"))[0] == f"Component 1 ({100 * ratio[0]:.1f} % of the variance)"
    assert titles(drawn_from("flowers", "lda", "species"))[1] == "Component 2 (0.9 % of the separation)"
    assert titles(drawn_from("flowers", "select_columns"))[0] in tables()["flowers"]
    clusters = titles(drawn_from("flowers", "kmeans", features=THREE, n_clusters=3))
    assert clusters[1] == "Principal component 2 (30.2 % of the variance)"


def test_one_coordinate_is_a_strip_for_each_class_with_the_middle_of_its_normal_distribution():
    of = drawn_from("two", "lda", "late")
    view = drawing(of, "projection_scatter").view
    spans = {row["series"]: row for row in view["layer"][1]["data"]["values"]}
    for name, span in spans.items():
        own = np.array([row["x"] for row in view["data"]["values"] if row["series"] == name])
        expected = scipy.stats.norm(own.mean(), own.std(ddof=1)).interval(0.95)
        assert (span["lower"], span["upper"]) == pytest.approx(expected)
    assert set(spans) == {"no", "yes"}


def test_few_rows_have_their_names_and_many_have_them_under_the_pointer():
    of = drawn_from("flowers", "pca")
    sample = of.report.row_sample
    names = [f"flower {row}" for row in sample.rows]
    many = drawing(resampled(of, items=names), "projection_scatter").view["layer"]
    assert [one["mark"] for one in many] == ["point"]
    assert {"field": "item", "title": "item"} in many[0]["encoding"]["tooltip"]
    axes = [RowAxis(name=axis.name, values=axis.values[:20]) for axis in sample.axes]
    few = resampled(of, rows=sample.rows[:20], items=names[:20], axes=axes)
    layers = drawing(few, "projection_scatter").view["layer"]
    assert [row["item"] for row in layers[-1]["data"]["values"]] == names[:20]
    assert layers[-1]["mark"]["type"] == "text"


def test_names_of_clusters_stand_in_the_plots_beside_their_numbers():
    of = drawn_from("flowers", "kmeans", features=THREE, n_clusters=3)
    named = of._replace(subject=of.subject._replace(names={1: "Long petals", 2: "x" * 60}))
    for name in ("cluster_cards", "cluster_prototypes", "cluster_sizes", "projection_scatter", "silhouette"):
        written = str(drawing(named, name).view)
        assert "1 Long petals" in written, name
        assert "2 xxx" in written, name
        assert "x" * 30 not in written, name
    groups = row_groups(of.report.row_sample, {0: "b", 1: "a"})
    assert order_of(groups, of.report.row_sample) == ["0 b", "1 a", "2"]


@pytest.mark.parametrize(("name", "thing"), [("kmeans", "cluster"), ("gmm", "component")])
def test_ellipses_are_of_clusters_or_of_components(name, thing):
    of = drawn_from("flowers", name, features=THREE)
    drawn = drawing(of, "component_ellipses")
    assert f"{thing}s" in drawn.subtitle[0]
    assert f"rows of a {thing} lie" in drawn.subtitle[1]
    assert f"{thing} (share)" in str(drawn.view)


def test_rows_without_a_finite_place_are_left_out():
    of = drawn_from("flowers", "pca")
    axes = [
        RowAxis(name="component 1", values=[None, 1e308, -1e308]),
        RowAxis(name="component 2", values=[1.0, 2.0, 2.0]),
    ]
    points = rows(resampled(of, rows=[3, 5, 7], axes=axes), "projection_scatter", 0)
    assert [row["row"] for row in points] == [5, 7]
    nowhere = [RowAxis(name="component 1", values=[None])]
    assert not plot_entries()["projection_scatter"].plot.applies(resampled(of, rows=[3], axes=nowhere))


def test_more_groups_than_colours_leave_the_smallest_together():
    clusters = [place for place in range(10) for _ in range(place + 1)]
    sample = RowSample(rows=list(range(55)), rows_train=55, clusters=clusters)
    groups = row_groups(sample)
    assert order_of(groups, sample) == ["4", "5", "6", "7", "8", "9", "other"]
    assert groups.count("other") == 10
    mixed = RowSample(rows=[0, 1, 2, 3], rows_train=4, classes=["1", 1, None, True])
    assert sorted(set(row_groups(mixed))) == ["(none)", "1", "1 (2)", "True"]


def test_bars_of_silhouettes_are_sorted_within_clusters_and_do_not_overlap():
    of = drawn_from("flowers", "kmeans", features=THREE, n_clusters=3)
    view = drawing(of, "silhouette").view
    (bars,) = [one["data"]["values"] for one in view["layer"] if one["mark"]["type"] == "bar"]
    assert sorted(row["row"] for row in bars) == list(range(150))
    found = dict(zip(of.report.row_sample.rows, of.report.row_sample.silhouettes, strict=True))
    assert all(row["x"] == found[row["row"]] for row in bars)
    for above, below in pairwise(bars):
        assert below["y"] <= above["y2"] + 1e-12
        assert above["cluster"] < below["cluster"] or above["x"] >= below["x"]
    assert bars[-1]["y2"] == pytest.approx(0)
    (mean,) = [metric for metric in of.report.train if metric.name == "silhouette"]
    assert mean.display in drawing(of, "silhouette").subtitle[1]
    assert view["layer"][2]["data"]["values"] == [{"x": mean.value}]


def test_rows_without_a_silhouette_are_counted_out():
    of = drawn_from("flowers", "kmeans", features=THREE, n_clusters=3)
    values = [value if place % 2 else None for place, value in enumerate(of.report.row_sample.silhouettes)]
    assert drawing(resampled(of, silhouettes=values), "silhouette").subtitle[0].startswith("75 of 150 training rows")


def test_bins_lie_on_one_side_of_the_threshold_and_hold_every_row():
    of = drawn_from("patients", "gaussian")
    bars, threshold = rows(of, "anomaly_histogram", 0), of.report.summary["threshold"]
    densities = np.array(of.report.row_sample.log_densities)
    assert column(bars, "y").sum() == densities.size
    below = [row for row in bars if row["series"] == ANOMALIES]
    assert sum(row["y"] for row in below) == (densities < threshold - 1e-4).sum() == 17
    assert max(row["x2"] for row in below) == pytest.approx(threshold, rel=1e-5)
    assert f"17 below the threshold of −{-threshold:.4g}" in drawing(of, "anomaly_histogram").subtitle[0]


def test_rows_far_below_are_in_the_first_bin():
    of = drawn_from("patients", "gaussian")
    densities = [-1e300, -5000.0, *of.report.row_sample.log_densities[2:]]
    odd = resampled(of, log_densities=densities)
    bars, subtitle = rows(odd, "anomaly_histogram", 0), drawing(odd, "anomaly_histogram").subtitle
    assert column(bars, "y").sum() == len(densities)
    assert bars[0]["x"] > -100
    assert subtitle[1] == "First bin: all 2 rows of a lower density"


@pytest.mark.parametrize("densities", [[-3.0], [-3.0, -3.0, None], [0.0, 1e300, -1e300]])
def test_odd_densities_have_bins(densities):
    of = resampled(drawn_from("patients", "gaussian"), log_densities=densities, rows=list(range(len(densities))))
    bars = rows(of, "anomaly_histogram", 0)
    assert column(bars, "y").sum() == sum(value is not None for value in densities)
    assert np.isfinite([row["x"] for row in bars]).all()


def test_profiles_are_standardised_by_all_training_rows():
    of = drawn_from("flowers", "kmeans", features=THREE, n_clusters=3)
    labels = np.array(of.report.row_sample.clusters)
    found = rows(of, "cluster_cards")
    assert len(found) == 9
    for row in found:
        values = tables()["flowers"][row["name"]]
        own = scipy.stats.zscore(values)[labels == int(row["series"].split()[0])]
        assert row["y"] == pytest.approx(own.mean(), abs=1e-12)
        assert (row["lower"], row["upper"]) == pytest.approx(tuple(np.quantile(own, [0.25, 0.75])))


def test_calibration_curves_hold_every_test_row_with_exact_intervals():
    of = drawn_from("two", "logistic", "late")
    found, columns = rows(of, "calibration_curve"), tables()["two"]
    truth = sum(of.report.confusion_matrix.counts[1])
    assert column(found, "rows").sum() == of.report.rows_test
    assert column(found, "rows") @ column(found, "y") == pytest.approx(truth)
    for row in found:
        exact = scipy.stats.binomtest(round(row["rows"] * row["y"]), row["rows"]).proportion_ci(0.95, "exact")
        assert (row["lower"], row["upper"]) == pytest.approx((exact.low, exact.high))
        assert row["left"] <= row["x"] <= row["right"]
    assert {row["series"] for row in found} == {"yes"} < set(columns["late"])
