"""Guarantees in the report of a training: what is given, and the premises that a request does not meet."""

import numpy as np
import pyarrow as pa
import pytest

from app.ml.contract.progress import unheard
from app.ml.jobs import search, select
from app.ml.kinds.job import Inputs, Source
from app.ml.models.header import read_header
from app.ml.models.model import decode
from app.ml.training.fitting import out_of_core
from app.ml.training.planning import cost
from app.ml.training.planning.projection import Projection
from app.ml.training.planning.start import Start
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train
from tests.ml.jobs.test_evaluate import NOWHERE, sheet
from tests.ml.training.beyond_memory import plan_within as plan

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


LOGISTIC = {"target": "class", "features": ["x", "y"], "algorithm": {"name": "logistic"}}
VERSION = "map", 1, "sha256:1"


def planned(spec, table=TABLE, memory_bytes=np.inf, **versions):
    return plan(TrainSpec.model_validate(spec), sheet(table).columns, table.num_rows, memory_bytes, **versions)


def trained(plan_, table=TABLE):
    return train(plan_, table, data_digest="sha256:0")


def report(algorithm="logistic", **spec):
    params = algorithm if isinstance(algorithm, dict) else {"name": algorithm}
    return trained(planned(LOGISTIC | {"algorithm": params} | spec)).report


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


def test_coordinates_of_another_model():
    made = trained(planned({"features": ["x", "y"], "algorithm": {"name": "pca"}}))
    between = Projection(*VERSION, read_header(made.blob), decode(made.blob))
    spec = {"target": "class", "algorithm": {"name": "logistic"}, "preprocessing": {"projection": {"model": "map"}}}
    found = trained(planned(spec, projection=between)).report.guarantees
    assert names(found) == ({"holdout"}, {"vc_dimension"})
    assert "coordinates of another model" in found.withheld[0].reason


def test_a_fit_that_starts_from_another():
    made = trained(planned(LOGISTIC))
    start = Start(*VERSION, read_header(made.blob), decode(made.blob))
    found = trained(planned(LOGISTIC)._replace(start=start)).report.guarantees
    assert names(found) == ({"holdout"}, {"vc_dimension"})
    assert "starts from another model" in found.withheld[0].reason


def test_copies_are_not_independent():
    table = pa.concat_tables([TABLE.slice(0, 150)] * 2)
    found = trained(planned(LOGISTIC, table), table).report.guarantees
    assert names(found) == (set(), {"holdout", "vc_dimension"})
    assert {one.reason for one in found.withheld} == {
        "More test rows equal a training row than chance explains: rows are not independent."
    }


def test_related_rows_are_not_independent():
    columns = {f"k{place}": row for place, row in enumerate(X[:60] @ X[:60].T)}
    table = pa.table(columns | {"class": TABLE["class"].slice(0, 60)})
    spec = {"target": "class", "relations": {"form": "square", "meaning": "kernel"}}
    made = trained(planned(spec | {"algorithm": {"name": "svm"}}, table), table)
    found = made.report.guarantees
    assert names(found) == (set(), {"holdout", "training"})
    assert "related" in found.withheld[0].reason


def test_rows_that_are_read_in_batches_have_no_measured_training_error(monkeypatch):
    monkeypatch.setattr(cost, "BATCH_CELLS", 600)
    monkeypatch.setattr(cost, "FEWEST", 100)
    monkeypatch.setattr(out_of_core, "BLOCK", 64)
    table = pa.table({"x": RNG.normal(size=3000), "y": RNG.normal(size=3000), "class": ["up", "down", "up"] * 1000})
    made = planned(LOGISTIC | {"algorithm": {"name": "linear_sgd", "epochs": 2}}, table, memory_bytes=1.0)
    assert made.batch_rows is not None
    assert names(trained(made, table).report.guarantees) == ({"holdout"}, {"training"})


MACHINE = {"name": "svm", "gamma": 0.5, "cv": None}


def test_machines_that_their_support_vectors_do_not_determine():
    early = report(MACHINE | {"max_iter": 1}).guarantees
    assert names(early) == ({"holdout", "margin"}, {"compression"})
    assert "not converged" in early.withheld[0].reason
    weighted = report(MACHINE, class_weight="balanced").guarantees
    assert names(weighted) == names(early)
    assert "weights of classes" in weighted.withheld[0].reason
    assert names(report(MACHINE, class_weight={"up": 2.0}).guarantees) == ({"holdout", "margin", "compression"}, set())


def outcome(kind, **spec):
    request = kind.request.model_validate(LOGISTIC | {"model": "m", "dataset": NOWHERE} | spec)
    return kind.run(request, Inputs((Source(sheet(TABLE), iter([TABLE])),)), unheard).trained.report.guarantees


def test_what_the_rows_have_chosen_was_not_fixed_before():
    folds = {"method": "kfold", "folds": 2}
    grid = [{"pointer": "/algorithm/l2", "values": [1.0, 0.1]}]
    for kind, spec, reason in (
        (search.KIND, {"grid": grid}, "best of 2 candidates"),
        (select.KIND, {"features": ["x", "y", "heavy"], "resamples": 0}, "columns were selected"),
    ):
        found = outcome(kind, validation=folds, **spec)
        assert names(found) == ({"holdout"}, {"vc_dimension"})
        assert reason in found.withheld[0].reason
    assert names(outcome(search.KIND, validation=folds)) == ({"holdout", "vc_dimension"}, set())
