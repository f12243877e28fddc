"""Plots of trained models: their numbers beside oracles, and every plot drawn from some model."""

import json
import re
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
import scipy
from sklearn import datasets

from app.ml.catalogue.algorithm_files import catalogue
from app.ml.charts.numbers import short
from app.ml.charts.specification import complete
from app.ml.contract.columns import TableColumn
from app.ml.contract.task import Task
from app.ml.evaluation.report import Report
from app.ml.kinds.plot import PlotSubject
from app.ml.kinds.query import Subject
from app.ml.models.contributions import contributions_of
from app.ml.models.golden import golden_table
from app.ml.models.model import decode
from app.ml.operations import plot_entries
from app.ml.queries.tree import TreeRequest, tree
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train

HOSTILE = {"a.b": "x[0]\\'\"", "datum['y']": "<script>", "new\nline\x07": "\u202e" + "long" * 200}
"""Names of columns, and a category of each."""


FIELDS = {
    *(
        "x",
        "y",
        "x2",
        "y2",
        "name",
        "series",
        "row",
        "label",
        "note",
        "lower",
        "upper",
        "sum",
        "count",
        "share",
        "rows",
    ),
    *("truth", "assigned", "threshold", "place", "cluster", "component", "value", "line", "left", "right"),
}
"""Fields of all plots."""


@cache
def tables():
    iris, diabetes = datasets.load_iris(), datasets.load_diabetes()
    flowers = dict(zip(("length", "width", "petal length", "petal width"), iris.data.T, strict=True))
    patients = dict(zip(diabetes.feature_names, diabetes.data.T, strict=True))
    codes = np.arange(60) % 3
    hostile = {name: np.where(codes == i, value, "other") for i, (name, value) in enumerate(HOSTILE.items())}
    return {
        "flowers": flowers | {"species": iris.target_names[iris.target].astype(str)},
        "two": flowers | {"late": np.where(iris.target == 2, "yes", "no")},
        "patients": patients | {"progression": diabetes.target},
        "gaps": {"x": np.where(np.arange(60) % 5, np.sin(np.arange(60)), np.nan), "y": np.sin(np.arange(60)) + codes},
        "letters": {"x": np.arange(54.0), "letter": np.repeat([*"abcdefghi"], 6)},
        "hostile": hostile | {"y": codes + np.sin(np.arange(60)), "<&>": np.where(codes, "<b>", "]]>")},
    }


@cache
def drawn_from(table, name, target=None, features=None, **parameters):
    """The subject of plots of a new model. features: names with commas between."""
    columns = tables()[table]
    numbers = {key: values.dtype.kind == "f" for key, values in columns.items()}
    sheet = [
        TableColumn(key, "numeric", int(np.isnan(values).sum()), np.unique(values).size)
        if numbers[key]
        else TableColumn(key, "categorical", 0, np.unique(values).size)
        for key, values in columns.items()
    ]
    given = pa.table({key: pa.array(values, from_pandas=True) for key, values in columns.items()})
    request = {"algorithm": {"name": name, **parameters}}
    request |= {"target": target} if target else {}
    request |= {"features": features.split(",")} if features else {}
    made = train(plan(TrainSpec.model_validate(request), sheet, given.num_rows), given, data_digest="sha256:0")
    report = made.report if isinstance(made.report, Report) else Report.model_validate(made.report)
    return PlotSubject(Subject("m", 1, "sha256:0", decode(made.blob), 1000), report, made.golden)


ALL = [
    ("flowers", "random_forest", "species", None, {"n_estimators": 5}),
    ("flowers", "logistic", "species", None, {}),
    ("two", "logistic", "late", None, {}),
    ("flowers", "decision_tree", "species", None, {}),
    ("patients", "lasso", "progression", None, {}),
    ("patients", "linear", "progression", "bmi", {}),
    ("patients", "additive", "progression", None, {}),
    ("patients", "gradient_boosting", "progression", None, {"n_estimators": 5}),
    ("flowers", "kmeans", None, "length,width,petal length", {"n_clusters": 3}),
    ("flowers", "agglomerative", None, "length,width,petal length", {}),
    ("flowers", "pca", None, None, {}),
    ("flowers", "som", "species", None, {"grid_height": 3, "grid_width": 4}),
    ("flowers", "gmm", None, "length,width,petal length", {}),
    ("flowers", "lda", "species", None, {}),
    ("two", "lda", "late", None, {}),
    ("patients", "gaussian", None, None, {}),
    ("hostile", "decision_tree", "y", None, {}),
    ("hostile", "logistic", "<&>", None, {}),
    ("hostile", "agglomerative", None, None, {}),
    ("hostile", "kmeans", None, None, {"n_clusters": 3}),
    ("hostile", "som", "<&>", None, {"grid_height": 2, "grid_width": 3}),
    ("hostile", "lda", "<&>", None, {}),
    ("hostile", "gmm", None, None, {"n_components": 2}),
]


def specifications(of):
    for name, entry in plot_entries().items():
        if entry.plot.applies(of):
            drawing = entry.plot.draw(of)
            yield name, complete(drawing.view, entry.plot.title, drawing.subtitle, "light")


def rows(of, name, layer=None):
    """The data of a plot, or of one of its layers."""
    view = plot_entries()[name].plot.draw(of).view
    return (view if layer is None else view["layer"][layer])["data"]["values"]


def column(found, name):
    return np.array([row[name] for row in found])


def test_every_plot_is_drawn_and_holds_its_data():
    names = set()
    for table, algorithm, target, features, parameters in ALL:
        for name, whole in specifications(drawn_from(table, algorithm, target, features, **parameters)):
            text = json.dumps(whole, allow_nan=False)
            assert '"url"' not in text
            assert len(text) < 200_000
            names.add(name)
    assert names == set(plot_entries())


def fields(part):
    """Fields, expressions and sort orders of a specification: all that names data."""
    if isinstance(part, dict):
        yield from (part[key] for key in ("field", "filter", "calculate", "expr") if isinstance(part.get(key), str))
        yield from (found for key, inner in part.items() if key != "values" for found in fields(inner))
    elif isinstance(part, list):
        yield from (found for inner in part for found in fields(inner))


def test_names_of_a_table_are_never_fields_nor_control_characters():
    for table, algorithm, target, features, parameters in ALL:
        if table == "hostile":
            for _, whole in specifications(drawn_from(table, algorithm, target, features, **parameters)):
                named = {field for field in fields(whole) if "datum." not in field}
                assert named <= FIELDS
                assert "\\u0007" not in json.dumps(whole)
                assert "\\u202e" not in json.dumps(whole)


def test_bands_of_a_roc_curve_are_exact_binomial_intervals():
    of = drawn_from("flowers", "random_forest", "species", n_estimators=5)
    positives = [sum(counts) for counts in of.report.confusion_matrix.counts]
    labels = [str(label) for label in of.report.confusion_matrix.classes]
    found = rows(of, "roc_curve")
    assert {row["series"] for row in found} == set(labels)
    for row in found:
        n = positives[labels.index(row["series"])]
        expected = scipy.stats.binomtest(round(row["y"] * n), n).proportion_ci(0.95, "exact")
        assert (row["lower"], row["upper"]) == pytest.approx((expected.low, expected.high))


def test_the_roc_curve_has_the_area_of_the_report():
    of = drawn_from("two", "logistic", "late")
    found = rows(of, "roc_curve")
    (area,) = [metric.value for metric in of.report.test if metric.name == "roc_auc"]
    assert np.trapezoid(column(found, "y"), column(found, "x")) == pytest.approx(area)


def test_bins_of_confidence_hold_every_test_row_and_the_hits_of_the_accuracy():
    for name, target in (("logistic", "species"), ("decision_tree", "species")):
        of = drawn_from("flowers", name, target)
        found = rows(of, "confidence_calibration")
        assert column(found, "rows").sum() == of.report.rows_test
        (accuracy,) = [metric.value for metric in of.report.test if metric.name == "accuracy"]
        assert (column(found, "rows") * column(found, "y")).sum() == pytest.approx(accuracy * of.report.rows_test)
        assert all(row["left"] < row["right"] for row in found)


def test_normal_quantiles_are_those_of_order_statistics():
    of = drawn_from("patients", "lasso", "progression")
    found = rows(of, "normal_quantiles")
    n, values = len(found), column(found, "y")
    assert (np.diff(values) >= 0).all()
    for i, row in enumerate(found, 1):
        low, high = scipy.stats.norm.ppf(scipy.stats.beta(i, n + 1 - i).ppf([0.025, 0.975]))
        assert row["lower"] == pytest.approx(values.mean() + values.std(ddof=1) * low)
        assert row["upper"] == pytest.approx(values.mean() + values.std(ddof=1) * high)
        assert row["x"] == pytest.approx(scipy.stats.norm.ppf((i - 0.375) / (n + 0.25)))


def panel(of, name):
    panels = plot_entries()["partial_dependence"].plot.draw(of).view["concat"]
    (found,) = [one for one in panels if one["encoding"]["x"]["title"] == name]
    return [layer["data"]["values"] for layer in found["layer"]]


def test_partial_dependence_of_a_linear_model_is_its_coefficient():
    of = drawn_from("patients", "linear", "progression", "bmi,bp,s5")
    summary = dict(zip(of.report.unscaled.columns, of.report.unscaled.summary["coefficients"], strict=True))
    for name, slope in summary.items():
        each, mean = panel(of, name)
        assert np.diff(column(mean, "y")) / np.diff(column(mean, "x")) == pytest.approx(np.full(24, slope))
        by_value = column(each, "y").reshape(25, 8)
        assert by_value.mean(axis=1) == pytest.approx(column(mean, "y"))


def test_partial_dependence_of_categories_is_that_of_rows_changed_by_hand():
    of = drawn_from("hostile", "decision_tree", "y")
    name, place = "a.b", 0
    _, mean = panel(of, name)
    levels = of.subject.model.inputs[place].levels
    for level, row in zip(levels, mean, strict=True):
        changed = [[level if i == place else cell for i, cell in enumerate(data)] for data in of.golden["data"]]
        table = pa.table(dict(zip(of.golden["columns"], map(list, zip(*changed, strict=True)), strict=True)))
        assert row["y"] == pytest.approx(of.subject.model.predict(table).values.mean())


def test_a_dendrogram_has_the_topmost_merges_of_scipy():
    of = drawn_from("flowers", "agglomerative", features="length,width,petal length")
    columns = np.stack([tables()["flowers"][name] for name in ("length", "width", "petal length")], axis=1)
    scaled = (columns - columns.mean(axis=0)) / columns.std(axis=0)
    expected = scipy.cluster.hierarchy.linkage(scaled, of.subject.model.params.linkage)[:, 2]
    lines, leaves = (rows(of, "dendrogram_diagram", layer) for layer in (1, 2))
    upright = [row for row in lines if row["x"] == row["x2"] and row["y"] != row["y2"]]
    assert sorted(row["x"] for row in upright) == pytest.approx(expected[-29:])
    assert sorted(row["y"] for row in leaves) == list(range(30))
    sizes = [int(row["label"].strip("()").split()[0]) if row["label"].startswith("(") else 1 for row in leaves]
    assert sum(sizes) == 150


def test_a_tree_has_its_leaves_apart_and_nodes_between_theirs():
    of = drawn_from("flowers", "decision_tree", "species")
    branches, nodes = (rows(of, "tree_diagram", layer) for layer in (0, 1))
    places = {(row["x"], row["y"]) for row in nodes}
    assert len(places) == len(nodes)
    assert all(row["x"] == row["x2"] or row["y"] == row["y2"] for row in branches)
    first = nodes[0]
    assert (first["x"], first["label"].split(" ≤ ")[0]) == (0, "petal length")
    assert "120 rows" in first["note"]


def test_pictures_state_what_they_leave_out():
    of = drawn_from("letters", "knn", "letter")
    for name in ("roc_curve", "precision_recall_curve"):
        drawing = plot_entries()[name].plot.draw(of)
        assert "7 of 9 classes, those of the most test rows" in drawing.subtitle[0]
        assert len({row["series"] for row in drawing.view["data"]["values"]}) == 7
    of = drawn_from("patients", "linear", "progression", "bmi")
    assert plot_entries()["fitted_curve"].plot.draw(of).subtitle == ("Line: predictions. Points: 88 of 88 test rows.",)


FEW_TREES = {"n_estimators": 2}
OF_TREES = {"estimator": {"name": "decision_tree", "max_depth": 2}, **FEW_TREES}
TREES = {
    "adaboost": FEW_TREES, "bagging": OF_TREES, "boost_majority": {}, "decision_tree": {"max_depth": 2},
    "gradient_boosting": FEW_TREES | {"max_depth": 2}, "logitboost": FEW_TREES, "random_forest": FEW_TREES,
    "random_subspace": OF_TREES,
}  # fmt: skip


def test_labels_of_the_tree_of_every_tree_learner():
    """A split has its condition, a leaf its class or its number: never the name of the target, and none is empty."""
    offered = {name: entry.algorithm for name, entry in catalogue().items() if entry.algorithm.offered}
    assert {name for name, algorithm in offered.items() if "tree" in algorithm.queries} == set(TREES)
    for name, parameters in TREES.items():
        tasks = {"species": Task.CLASSIFICATION, "petal width": Task.REGRESSION}
        for target in (target for target, task in tasks.items() if task in offered[name].tasks):
            features = ",".join({"length", "width", "petal length", "petal width"} - {target})
            of = drawn_from.__wrapped__("flowers", name, target, features, **parameters)
            nodes = rows(of, "tree_diagram", 1)
            inner = [node for node in nodes if " ≤ " in node["label"] or node["label"].endswith(" is known")]
            leaves = [node["label"] for node in nodes if node not in inner]
            assert inner, name
            assert leaves, name
            named = r"(setosa|versicolor|virginica) [+−]?[\d.]+( %)?" if target == "species" else r"−?[\d.]+(e[+−]\d+)?"
            assert all(re.fullmatch(named, label) for label in leaves if "more" not in label), (name, leaves)


def test_sums_of_a_tree_are_written_out():
    of = drawn_from("flowers", "decision_tree", "species", oblique=3, max_depth=2)
    names = [node["name"] for node in rows(of, "tree_diagram", 1)]
    (oblique,) = [name for name in names if sum(column in name for column in ("length", "width")) > 1][:1]
    assert re.fullmatch(r"−?[\d.e−+]* ?[a-z ]+ [+−] .+ ≤ −?[\d.]+", oblique), oblique
    of = drawn_from("patients", "decision_tree", "progression", leaf_model="linear", max_depth=1, min_samples_leaf=60)
    drawn, known = rows(of, "tree_diagram", 1), tree(of.subject, TreeRequest()).nodes
    for node, row in zip(known, drawn, strict=True):
        if node.linear is not None and node.linear.terms:
            assert row["name"].startswith(short(node.linear.intercept).lstrip("−"), row["name"].startswith("−"))
            assert all(term.column in row["name"] for term in node.linear.terms)
    assert any(node.linear is not None and node.linear.terms for node in known)


def test_a_branch_of_missing_values_that_another_node_shares_is_drawn_once():
    of = drawn_from("gaps", "random_forest", "y", n_estimators=3)
    nodes = rows(of, "tree_diagram", 1)
    assert len({(row["x"], row["y"]) for row in nodes}) == len(nodes) > 3


def test_prototypes_lie_between_the_ends_of_their_columns():
    of = drawn_from("flowers", "kmeans", features="length,width,petal length", n_clusters=3)
    found = rows(of, "cluster_prototypes")
    assert len(found) == 9
    for row in found:
        values = tables()["flowers"][row["name"]]
        centre = of.report.prototypes[int(row["cluster"])].values[row["name"]]
        assert row["y"] == pytest.approx((centre - values.min()) / np.ptp(values))


def test_explained_variance_adds_up():
    of = drawn_from("flowers", "pca")
    found = rows(of, "explained_variance")
    assert column(found, "sum") == pytest.approx(np.cumsum(of.report.summary["variance_ratios"]))
    assert column(found, "sum")[-1] == pytest.approx(1)
    assert plot_entries()["explained_variance"].plot.draw(of).subtitle[0].endswith("pale bars are left out.")


def test_intervals_of_coefficients_are_those_of_their_errors():
    of = drawn_from("patients", "linear", "progression", "bmi,bp,s5")
    found = plot_entries()["coefficients"].plot.draw(of).view["data"]["values"]
    errors = dict(zip(of.report.columns, of.report.summary["standard_errors"], strict=True))
    for row in found:
        assert row["upper"] - row["lower"] == pytest.approx(2 * scipy.stats.norm.ppf(0.975) * errors[row["name"]])


def golden_matrix(of):
    table = golden_table(of.subject.model, of.golden)
    return table if isinstance(table, np.ndarray) else of.subject.model.preparation.raw(table)


def test_bars_of_one_prediction_are_its_contributions():
    for table, name, target in (("flowers", "random_forest", "species"), ("patients", "knn", "progression")):
        of = drawn_from(table, name, target)
        drawing = plot_entries()["row_contributions"].plot.draw(of)
        model = of.subject.model
        raw = golden_matrix(of)[:1]
        found, predicted = contributions_of(model, raw), model.predict_raw(raw)
        score = int(predicted.values[0]) if len(found.scores) > 1 else 0
        rows = drawing.view["data"]["values"]
        values = found.values[0, score]
        assert [row["x"] for row in rows] == sorted(values[values != 0].tolist(), key=lambda value: -abs(value))
        assert [row["series"] for row in rows] == ["raises" if row["x"] > 0 else "lowers" for row in rows]
        assert ("lower" in rows[0]) == (name == "knn")


def test_coefficients_of_machines_are_named_by_the_classes_that_they_tell_apart():
    of = drawn_from("flowers", "svm", "species", None, kernel="linear", cv=None)
    found = plot_entries()["coefficients"].plot.draw(of).view["data"]["values"]
    assert {row["series"] for row in found} == {
        "versicolor over setosa", "virginica over setosa", "virginica over versicolor",
    }  # fmt: skip
    scores = dict(zip(of.report.columns, np.transpose(of.report.summary["coefficients"]), strict=True))
    assert sorted(column(found, "x")) == pytest.approx(sorted(np.concatenate([*scores.values()])))
