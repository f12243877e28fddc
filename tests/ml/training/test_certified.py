"""Guarantees in the report of a training: what is given, and the premises that a request does not meet."""

import numpy as np
import pyarrow as pa
import pytest

from app.ml.contract.columns import TableColumn
from app.ml.training.plan import plan
from app.ml.training.train import train
from app.ml.training.train_spec import TrainSpec

N = 300
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
TABLE = pa.table({
    "x": X[:, 0],
    "y": X[:, 1],
    "when": np.arange(float(N)),
    "who": (np.arange(N) // 3).astype(float),
    "heavy": RNG.uniform(1, 2, N),
    "class": np.where(X[:, 0] + RNG.normal(0, 0.5, N) > 0, "up", "down").tolist(),
    "third": np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])].tolist(),
})  # fmt: skip


def report(algorithm="logistic", **spec):
    params = algorithm if isinstance(algorithm, dict) else {"name": algorithm}
    request = TrainSpec.model_validate({"target": "class", "features": ["x", "y"], "algorithm": params} | spec)
    kinds = {"class": "categorical", "third": "categorical"}
    sheet = [TableColumn(name, kinds.get(name, "numeric"), 0, N) for name in TABLE.column_names]
    return train(plan(request, sheet, N), TABLE, data_digest="sha256:0").report


def names(found):
    return {one.name for one in found.certificates}, {one.name for one in found.withheld}


@pytest.mark.parametrize(
    ("algorithm", "given", "withheld"),
    [
        ("logistic", {"holdout", "vc_dimension"}, set()),
        ("perceptron", {"holdout", "vc_dimension", "mistakes"}, set()),
        ("decision_tree", {"holdout", "labellings"}, set()),
        ({"name": "svm", "gamma": 0.5, "cv": None}, {"holdout", "margin", "compression"}, set()),
        ({"name": "svm", "kernel": "linear"}, {"holdout", "vc_dimension", "margin"}, set()),
        ({"name": "bagging", "n_estimators": 5}, {"holdout", "vote"}, set()),
        ("knn", {"holdout"}, {"training"}),
    ],
)
def test_bounds_of_an_algorithm(algorithm, given, withheld):
    assert names(report(algorithm).guarantees) == (given, withheld)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"validation": {"group": "who"}}, "'who'"),
        ({"validation": {"time": "when"}}, "'when'"),
        ({"weights": "heavy"}, "'heavy'"),
    ],
)
def test_rows_that_are_not_independent_or_not_alike(spec, reason):
    found = report(**spec).guarantees
    assert names(found) == (set(), {"holdout", "vc_dimension"})
    assert all(reason in one.reason for one in found.withheld)


def test_means_of_the_target_are_no_fixed_preparation():
    assert names(report(preprocessing={"categories": "target"}).guarantees) == ({"holdout"}, {"vc_dimension"})


def test_without_test_rows_the_training_rows_remain():
    found = report(validation={"test_fraction": 0}).guarantees
    assert names(found) == ({"vc_dimension"}, {"holdout"})
    assert found.certificates[0].delta == 0.05


def test_three_classes_have_no_plane():
    assert names(report(target="third").guarantees) == ({"holdout"}, {"training"})


def test_numbers_have_no_error_rate():
    assert report("ridge", target="y", features=["x"]).guarantees is None


def test_measured_error_rates_are_those_of_the_metrics():
    found = report()
    measured = {one.name: one.measured for one in found.guarantees.certificates}
    accuracy = {part: next(m.value for m in getattr(found, part) if m.name == "accuracy") for part in ("test", "train")}
    assert measured == pytest.approx({"holdout": 1 - accuracy["test"], "vc_dimension": 1 - accuracy["train"]})
