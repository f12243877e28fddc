"""The indicators of a categorical input add up to 1: that is no dependence to warn of. Classes are called by name."""

import numpy as np
import pyarrow as pa
import pytest

from app.ml.algorithms import generative_bayes, knn
from app.ml.contract.algorithm import Context, Data, Task
from app.ml.contract.columns import TableColumn
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.reporting import reporting
from app.ml.training.train import train

ALONE = {
    "linear": {"name": "linear"},
    "through the origin": {"name": "linear", "fit_intercept": False},
    "ridge without a penalty": {"name": "ridge", "l2": 0.0},
    "intercept as a coefficient": {"name": "ridge", "l2": 0.0, "penalise_intercept": True},
    "normal densities": {"name": "generative_bayes", "density": "shared_covariance"},
}


def table(n=120):
    rng = np.random.default_rng(0)
    plan, city = rng.integers(0, 3, n), rng.integers(0, 4, n)
    x = rng.normal(size=n)
    return {
        "x": x,
        "plan": [f"plan {code}" for code in plan],
        "city": [f"city {code}" for code in city],
        "y": x + plan + rng.normal(size=n),
        "class": ["good" if value > 0 else "bad" for value in x + rng.normal(size=n)],
    }


def trained(columns, algorithm, target):
    features = [name for name in columns if name not in {"y", "class"}]
    rows = pa.table(columns)
    sheet = [
        TableColumn(name, "numeric" if name in "xy" else "categorical", 0, len(cells.unique()))
        for name, cells in zip(rows.column_names, rows.columns, strict=True)
    ]
    spec = TrainSpec.model_validate({"algorithm": algorithm, "features": features, "target": target})
    return train(plan(spec, sheet, rows.num_rows), rows, data_digest="sha256:0").report


@pytest.mark.parametrize("case", ALONE)
def test_indicators_alone_are_no_dependence(case):
    algorithm = ALONE[case]
    report = trained(table(), algorithm, "class" if algorithm["name"] == "generative_bayes" else "y")
    assert not [messages for messages in report.warnings if "span only" in messages or "dependent" in messages]


@pytest.mark.parametrize("case", [case for case in ALONE if ALONE[case]["name"] != "generative_bayes"])
def test_a_dependence_beyond_them_is_reported(case):
    """The country follows from the city: one of its two indicators is new for nobody."""
    columns, algorithm = table(), ALONE[case]
    columns["country"] = ["north" if city < "city 2" else "south" for city in columns["city"]]
    report = trained(columns, algorithm, "y")
    (result,) = [messages for messages in report.warnings if "span only" in messages]
    most = {"through the origin": 8, "intercept as a coefficient": 8}.get(case, 7)
    assert f"span only {most - 1} of {most}" in result


@pytest.mark.parametrize("algorithm", ["logistic", "linear_sgd"])
def test_a_summary_names_classes(algorithm):
    report = trained(table(), {"name": algorithm}, "class")
    assert report.summary["classes"] == ["bad", "good"]
    assert report.unscaled is None or report.unscaled.summary.get("classes", ["bad", "good"]) == ["bad", "good"]


def test_a_warning_names_classes():
    data = Data.of(Task.CLASSIFICATION, [[0.0], [1], [2], [2]], [0, 0, 1, 1], labels=("bad", "good"))
    (result,) = generative_bayes.fit(generative_bayes.GenerativeBayes(), data, Context.of(0)).warnings
    assert "classes good." in result


def test_a_code_of_no_class_has_no_name():
    given = {"classes": [1, -1], "rules": [{"class": -1, "then": 0}]}
    found = reporting.readable(given, None, ("bad", "good"))
    assert found == {"classes": ["good", None], "rules": [{"class": None, "then": "bad"}]}


def test_neighbours_have_a_class_by_name():
    data = Data.of(Task.CLASSIFICATION, [[0.0], [1], [2], [2]], [0, 0, 1, 1])
    params = knn.KNN(n_neighbors=1)
    explanation = knn.explain(params, knn.fit(params, data, Context.of(0)).state, np.array([[2.1]]))
    (near,) = reporting.readable(explanation[0], None, ("bad", "good"))["neighbours"]
    assert near["class"] == "good"
    assert "target" not in near


def test_a_fit_that_did_not_converge_has_one_sentence_about_it():
    for algorithm in ({"name": "mlp", "epochs": 1}, {"name": "logistic", "max_iter": 1}):
        report = trained(table(), algorithm, "class")
        assert not report.converged
        assert sum("converge" in warning for warning in report.warnings) == 1
