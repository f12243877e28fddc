"""Split conformal intervals: their rank, their coverage, and that they travel with the model."""

import numpy as np
import pyarrow as pa
import pytest

from app.base.errors import CorruptModel
from app.ml.algorithms import knn, linear, ridge
from app.ml.catalogue.algorithm_files import catalogue
from app.ml.contract.algorithm import Context, Data, Task
from app.ml.contract.columns import TableColumn
from app.ml.models import safetensors_format
from app.ml.models.conformal import UNCALIBRATED, Calibration, reach, with_intervals
from app.ml.models.model import decode, encode
from app.ml.statistics.error_by_prediction import error_of_predictions
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train


@pytest.mark.parametrize("m", [1, 9, 18, 19, 20, 99, 1000])
@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95, 0.99])
def test_the_rank_is_the_least_that_covers(m, confidence):
    """With m errors and a new one in any order, P(new ≤ r-th smallest) = r/(m + 1)."""
    rank = reach(np.arange(1.0, m + 1), confidence)
    if np.isinf(rank):
        assert m / (m + 1) < confidence
    else:
        assert (rank - 1) / (m + 1) < confidence <= rank / (m + 1) + 1e-12


def noise(kind, rng, x):
    spread = {"normal": rng.normal, "heavy": lambda size: rng.standard_t(2, size)}.get(kind, rng.exponential)
    return spread(size=len(x)) * (1 + np.abs(x[:, 0]))


@pytest.mark.parametrize("kind", ["normal", "heavy", "skew"])
@pytest.mark.parametrize(("module", "params"), [(ridge, ridge.Ridge()), (knn, knn.KNN())])
def test_95_of_100_new_targets_lie_within(kind, module, params):
    """Whatever the noise, its size growing with an input, and a model that is wrong: the target is bent."""
    rng, within = np.random.default_rng(7), []
    for _ in range(150):
        x = rng.normal(size=(129, 2))
        y = np.sin(2 * x[:, 0]) + x[:, 1] ** 2 + noise(kind, rng, x)
        state = module.fit(params, Data.of(Task.REGRESSION, x[:40], y[:40]), Context.of(0)).state
        errors = Calibration.of(module.predict(params, state, x[40:79]), y[40:79])
        bounds = with_intervals(module.ALGORITHM, params, errors).interval(params, state, x[79:], 0.95)
        within.append(((bounds[:, 0] <= y[79:]) & (y[79:] <= bounds[:, 1])).mean())
    assert 0.93 <= np.mean(within) <= 0.97


REGRESSORS = [name for name, entry in catalogue().items() if Task.REGRESSION in entry.algorithm.tasks]


@pytest.mark.parametrize("name", REGRESSORS)
def test_the_default_interval_of_every_regressor_is_for_a_new_row(name):
    """95 % of fresh targets lie within; an interval for the mean alone holds few of them."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(3000, 2))
    table = pa.table({"a": x[:, 0], "b": x[:, 1], "y": x @ [1.0, -0.5] + rng.normal(size=3000)})
    spec = TrainSpec.model_validate({"target": "y", "algorithm": {"name": name}})
    columns = [TableColumn(column, "numeric", 0, 1000) for column in table.column_names]
    model = decode(train(plan(spec, columns, 1000), table.slice(0, 1000), data_digest="sha256:0").blob)
    new = table.slice(1000)
    low, high = model.predict(new, 0.95).intervals.T
    y = new["y"].to_numpy()
    assert 0.90 <= np.mean((low <= y) & (y <= high)) <= 0.99


def test_an_algorithm_with_intervals_of_its_own_keeps_them():
    assert with_intervals(linear.ALGORITHM, linear.Linear(), Calibration(np.ones(99))) is linear.ALGORITHM
    assert with_intervals(ridge.ALGORITHM, ridge.Ridge(), UNCALIBRATED) == ridge.ALGORITHM


def trained(transform="none", test_fraction=0.25):
    rng = np.random.default_rng(3)
    x = rng.normal(size=200)
    table = pa.table({"x": x, "y": np.exp(x + 0.3 * rng.normal(size=200))})
    columns = [TableColumn(name, "numeric", 0, 200) for name in table.column_names]
    spec = {"target": "y", "algorithm": {"name": "ridge"}, "preprocessing": {"target": transform}}
    spec["preprocessing"]["detect_target_minimum"] = False
    spec["validation"] = {"test_fraction": test_fraction}
    return train(plan(TrainSpec.model_validate(spec), columns, table.num_rows), table, data_digest="sha256:0"), table


@pytest.mark.parametrize("transform", ["none", "log"])
def test_errors_are_those_of_the_rows_held_out_and_ends_are_turned_back(transform):
    done, table = trained(transform)
    model = decode(done.blob)
    forward, back = (np.log, np.exp) if transform == "log" else (np.asarray, np.asarray)
    predicted = model.predict(table, 0.9)
    spread = error_of_predictions(model.calibration.spread, forward(predicted.values))
    errors = np.abs(forward(table["y"].to_numpy()) - forward(predicted.values)) / spread
    assert np.isclose(errors[:, None], model.calibration.scores, rtol=1e-9, atol=1e-12).any(axis=0).all()
    assert model.calibration.scores.size == done.report.rows_test == 50
    half = model.calibration.scores[45] * spread  # ⌈51 · 0.9⌉ = 46
    expected = np.column_stack([back(forward(predicted.values) - half), back(forward(predicted.values) + half)])
    np.testing.assert_allclose(predicted.intervals, expected, rtol=1e-9)


def test_they_travel_with_the_model_and_without_rows_held_out_nothing_does():
    done, _ = trained()
    model = decode(done.blob)
    assert encode(model) == done.blob
    assert "errors" not in safetensors_format.read_document(trained(test_fraction=0)[0].blob)
    document, arrays = safetensors_format.read(done.blob)
    for wrong in (arrays["errors"][::-1], -arrays["errors"], arrays["errors"] * np.nan, arrays["errors"][:, None]):
        with pytest.raises(CorruptModel):
            decode(safetensors_format.write(document, arrays | {"errors": wrong.copy()}))
