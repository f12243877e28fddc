"""Trainings behind a projection that was fitted before, against the same steps made by hand."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import KNeighborsClassifier

from app.base.errors import CorruptModel, InvalidRequest
from app.ml.models.golden import check_golden
from app.ml.models.header import read_header
from app.ml.models.model import decode, encode
from app.ml.training.fitting import out_of_core
from app.ml.training.planning import cost
from app.ml.training.planning.projection import Projection
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train
from tests.ml.training.beyond_memory import plan_within as plan
from tests.ml.training.test_train import MIXED, frame, sheet

IRIS, DIABETES = frame(load_iris()), frame(load_diabetes())


def projection(table, algorithm="pca", **spec):
    """Fitted on all rows of a table, without its target unless it has a use for one."""
    requested = {"algorithm": {"name": algorithm, **spec.pop("params", {})}, **spec}
    expected = TrainSpec.model_validate(requested)
    made = train(plan(expected, sheet(table), table.num_rows), table, data_digest="sha256:0")
    return Projection("map", 1, "sha256:1", read_header(made.blob), decode(made.blob))


def planned(table, between, memory_bytes=np.inf, **spec):
    requested = {"preprocessing": {"projection": {"model": "map"}}, **spec}
    return plan(TrainSpec.model_validate(requested), sheet(table), table.num_rows, memory_bytes, projection=between)


def trained(table, between, **spec):
    return train(planned(table, between, **spec), table, data_digest="sha256:0")


def test_the_model_is_the_one_of_the_coordinates():
    features = [name for name in DIABETES.column_names if name != "target"]
    between = projection(DIABETES, features=features, params={"n_components": 3})
    made = trained(DIABETES, between, algorithm={"name": "linear"}, target="target", validation={"test_fraction": 0.0})
    model = decode(made.blob)
    coordinates = between.fitted.predict(DIABETES).values
    assert coordinates.shape == (442, 3)
    design, y = np.column_stack([np.ones(442), coordinates]), DIABETES["target"].to_numpy()
    expected = design @ np.linalg.lstsq(design, y, rcond=None)[0]
    np.testing.assert_allclose(model.predict(DIABETES).values, expected, rtol=1e-9)
    assert [column.name for column in model.inputs] == features
    assert encode(model) == made.blob
    assert (
        made.blob
        == trained(
            DIABETES, between, algorithm={"name": "linear"}, target="target", validation={"test_fraction": 0.0}
        ).blob
    )
    assert model.receipt["projection"] == {
        "model": "map",
        "version": 1,
        "digest": "sha256:1",
        "data_digest": "sha256:0",
    }
    check_golden(model, made.golden)


@pytest.mark.parametrize(("algorithm", "least"), [("nca", 0.97), ("lmnn", 0.96)])
def test_a_learned_metric_is_not_undone_behind_it(algorithm, least):
    """Accuracy of neighbours in ten folds: 0.940 in the plain columns, 0.900 in coordinates of equal spread."""
    metric = {"algorithm": "metric_learning", "params": {"method": algorithm}}
    between = projection(IRIS, target="target", kinds={"target": "categorical"}, **metric)
    spec = {"algorithm": {"name": "knn"}, "target": "target", "kinds": {"target": "categorical"}}
    report = trained(IRIS, between, **spec, validation={"method": "kfold", "folds": 10, "test_fraction": 0}).report
    assert next(metric.value for metric in report.cross_validation if metric.name == "accuracy") >= least


@pytest.mark.parametrize("scaling", ["standard", "minmax"])
def test_a_request_may_scale_coordinates(scaling):
    between = projection(IRIS, features=["sepal length (cm)", "petal length (cm)", "petal width (cm)"])
    spec = {"algorithm": {"name": "ridge"}, "target": "sepal width (cm)", "features": None}
    offsets = []
    for how in (scaling, None):
        chosen = {"projection": {"model": "map"}} | ({"scaling": how} if how else {})
        offsets.append(trained(IRIS, between, **spec, preprocessing=chosen).report.scales)
    assert offsets[0] != offsets[1] == [1.0] * len(offsets[1])


def test_two_step_is_the_same_as_a_projection_in_front():
    """Of all rows: a first step that is fitted within, or beforehand, gives the same coordinates and predictions."""
    names = [name for name in DIABETES.column_names if name != "target"]
    step, learner = {"name": "pca", "n_components": 3}, {"name": "knn"}
    between = projection(DIABETES, features=names, params={"n_components": 3})
    every = {"target": "target", "validation": {"test_fraction": 0.0}}
    behind = decode(trained(DIABETES, between, algorithm=learner, **every).blob)
    spec = {"algorithm": {"name": "two_step", "representation": step, "estimator": learner}, **every}
    within = plan(TrainSpec.model_validate(spec), sheet(DIABETES), DIABETES.num_rows)
    both = decode(train(within, DIABETES, data_digest="sha256:0").blob)
    np.testing.assert_allclose(both.predict(DIABETES).values, behind.predict(DIABETES).values, rtol=1e-9)


@pytest.mark.parametrize("validation", [{"method": "kfold", "folds": 5}, {"test_fraction": 0.5}])
def test_intervals_are_of_the_coordinates_too(validation):
    table = DIABETES.slice(0, 60)
    between = projection(table, features=["bmi", "bp", "s5"], params={"n_components": 2})
    spec = {"algorithm": {"name": "ridge"}, "target": "target", "validation": validation}
    made = trained(table, between, **spec)
    model, rows = decode(made.blob), DIABETES.slice(60)
    places = between.fitted.predict(DIABETES).values
    by_hand = pa.table({"coordinate 1": places[:, 0], "coordinate 2": places[:, 1], "target": DIABETES["target"]})
    plain = plan(
        TrainSpec.model_validate(spec | {"preprocessing": {"scaling": "none"}}), sheet(by_hand.slice(0, 60)), 60
    )
    expected = train(plain, by_hand.slice(0, 60), data_digest="sha256:0")
    predicted, same = model.predict(rows, 0.8), decode(expected.blob).predict(by_hand.slice(60), 0.8)
    np.testing.assert_array_equal(predicted.values, same.values)
    np.testing.assert_array_equal(predicted.intervals, same.intervals)
    assert made.report.test == expected.report.test
    assert made.report.intervals == expected.report.intervals
    assert bool(model.calibration.folds) == ("folds" in validation)


def test_categories_and_missing_cells_are_those_of_the_projection():
    features = ["größe, cm", "stadt", "neu", "seit"]
    between = projection(MIXED, features=features, params={"n_components": 2})
    made = trained(MIXED, between, algorithm={"name": "linear"}, target="n")
    model = decode(made.blob)
    row = {
        "größe, cm": pa.array([None], pa.float64()),
        "stadt": ["Rom"],
        "neu": [True],
        "seit": pa.array([0], pa.timestamp("us", "UTC")),
    }
    predicted = model.predict(pa.table(row))
    assert {(flag.code, flag.column) for flag in predicted.flags} >= {
        ("imputed", "größe, cm"),
        ("unseen_category", "stadt"),
    }
    assert np.isfinite(predicted.values).all()
    np.testing.assert_array_equal(
        predicted.values, model.predict_raw(model.preparation.raw(pa.table(row)), None).values
    )


def test_a_projection_that_learned_classes_serves_too():
    between = projection(IRIS, "lda", target="target", task="projection")
    features = list(between.features)
    made = trained(IRIS, between, algorithm={"name": "knn", "n_neighbors": 5}, target="target")
    accuracy = next(metric for metric in made.report.test if metric.name == "accuracy")
    assert accuracy.value >= 0.9
    assert features == [name for name in IRIS.column_names if name != "target"]
    (warning,) = between.warnings("sha256:0")
    assert "was fitted on this dataset, rows held out now among them, with their 'target'" in warning
    assert list(between.warnings("sha256:other")) == []


def test_a_table_that_is_read_in_batches_is_projected_in_batches(monkeypatch):
    monkeypatch.setattr(cost, "BATCH_CELLS", 1200)
    monkeypatch.setattr(cost, "FEWEST", 100)
    monkeypatch.setattr(out_of_core, "BLOCK", 64)
    rng = np.random.default_rng(5)
    x = rng.normal(size=(4000, 3))
    table = pa.table({"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "y": x @ [1.0, -2.0, 3.0]})
    between = projection(table, features=["a", "b", "c"], params={"n_components": 3})
    within = planned(table, between, 1.0, algorithm={"name": "linear_sgd", "epochs": 8}, target="y")
    assert within.batch_rows
    assert within.batch_rows < 4000
    model = decode(train(within, table, data_digest="sha256:0").blob)
    assert np.abs(model.predict(table).values - table["y"].to_numpy()).max() < 0.1


def refusals(table, between, **spec):
    with pytest.raises(InvalidRequest) as error:
        planned(table, between, **{"algorithm": {"name": "ridge"}, "target": "target", **spec})
    return {(fault.pointer, fault.detail.split(":")[0]) for fault in error.value.faults}


def test_what_does_not_fit_is_named():
    between = projection(DIABETES, features=["bmi", "bp"])
    at = "/preprocessing/projection"
    assert refusals(DIABETES, None) == {(at, "No projection that was fitted before can stand here")}
    (lacking,) = refusals(DIABETES.drop_columns("bmi"), between)
    assert (lacking[0], "does not have 'bmi'" in lacking[1]) == (at, True)
    assert (at, "The projection reads the column 'bmi', which is no input of this training.") in refusals(
        DIABETES, between, target="bmi"
    )
    basis = [{"kind": "polynomial"}]
    found = refusals(DIABETES, between, features=["bmi"], preprocessing={"projection": {"model": "m"}, "basis": basis})
    assert {pointer for pointer, _ in found} == {"/features", "/preprocessing/basis"}
    dated = refusals(DIABETES, between, preprocessing={"projection": {"model": "m"}, "dates": ["year"]})
    assert ("/preprocessing/dates", "Dates are columns of the dataset, which the projection replaces.") in dated
    other = between._replace(header=between.header._replace(task="clustering"))
    assert refusals(DIABETES, other) == {(at, "The model 'map' is no projection")}
    chained = between._replace(header=between.header._replace(receipt={"projection": {}}))
    assert refusals(DIABETES, chained) == {(at, "This projection stands behind another one")}
    text = DIABETES.set_column(DIABETES.column_names.index("bmi"), "bmi", pa.array(["a", "b"] * 221))
    assert refusals(text, between) == {(at, "The column 'bmi' is categorical; the projection reads it as numeric.")}


def test_a_model_without_its_projection_is_corrupt():
    between = projection(DIABETES, features=["bmi", "bp"])
    made = trained(DIABETES, between, algorithm={"name": "ridge"}, target="target")
    with pytest.raises(CorruptModel):
        decode(made.blob.replace(b"n_components", b"n_companents"))


def test_neighbours_behind_a_projection_are_those_of_its_metric():
    """The distance of Lx is that of A = LᵀL, here L of lda as scikit-learn fits it: no rule of `knn` is lost."""
    between = projection(IRIS, "lda", target="target", preprocessing={"scaling": "none"})
    spec = {"target": "target", "preprocessing": {"scaling": "none", "projection": {"model": "map"}}}
    made = trained(
        IRIS, between, algorithm={"name": "knn", "n_neighbors": 7}, validation={"test_fraction": 0.0}, **spec
    )
    model, (x, y) = decode(made.blob), load_iris(return_X_y=True)
    turn = LinearDiscriminantAnalysis(solver="svd").fit(x, y).scalings_
    metric = {"metric": "mahalanobis", "metric_params": {"VI": turn @ turn.T}, "algorithm": "brute"}
    peer = KNeighborsClassifier(7, **metric).fit(x, y)
    far, _ = peer.kneighbors(x[::5])
    matrix = model.preparation.matrix(model.preparation.raw(IRIS.take(np.arange(0, 150, 5))))
    found = model.algorithm.queries["neighbours"](model.params, model.state, matrix, None)
    np.testing.assert_allclose(found.distances, far, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(model.predict(IRIS).probabilities, peer.predict_proba(x), atol=1e-8)
