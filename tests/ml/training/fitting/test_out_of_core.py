"""Tables that do not fit: the same metrics by batches, and nothing of a row remembered but its number."""

import math

import numpy as np
import pyarrow as pa
import pytest

from app.base.errors import InvalidData, InvalidRequest
from app.ml.catalogue.algorithm_files import find
from app.ml.contract.algorithm import Context, Data, Task
from app.ml.contract.columns import TableColumn
from app.ml.models.model import decode
from app.ml.training.fitting import out_of_core
from app.ml.training.fitting.fit_in_batches import fit_batches
from app.ml.training.fitting.out_of_core import Draw, Stream
from app.ml.training.planning import cost
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train
from tests.ml.training.beyond_memory import plan_within as plan

ROWS = 6000
SMALL = 1.0
"""Bytes: whatever may be learned by batches, is."""


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch):
    """So that few rows make many batches."""
    monkeypatch.setattr(cost, "BATCH_CELLS", 6000)
    monkeypatch.setattr(cost, "FEWEST", 100)
    monkeypatch.setattr(out_of_core, "BLOCK", 64)


def table(rows=ROWS, seed=0, *, missing=True):
    rng = np.random.default_rng(seed)
    x, town = rng.normal(size=(rows, 3)) * [1, 5, 0.1] + [0, 100, -2], rng.integers(0, 4, rows)
    score = x @ [1, -0.5, 10] + town + 0.5 * rng.normal(size=rows)
    gaps = np.arange(rows) % 7 == 0 if missing else np.zeros(rows, bool)
    return pa.table(
        {
            "a": pa.array(x[:, 0], mask=np.arange(rows) % 11 == 0),
            "b": x[:, 1],
            "c": x[:, 2],
            "town": np.array(["Bonn", "Köln", "Trier", "Ulm"])[town],
            "score": pa.array(score, mask=gaps),
            "sign": pa.array(np.array(["minus", "plus"])[(score > np.median(score)) * 1], mask=gaps),
            "weight": np.full(rows, 2.0),
        }
    )


def sheet(rows):
    return [
        TableColumn(
            name, "categorical" if cells.type == pa.string() else "numeric", cells.null_count, len(cells.unique())
        )
        for name, cells in zip(rows.column_names, rows.columns, strict=True)
    ]


def spec_of(algorithm="linear_sgd", target="score", params=None, **more):
    requested = {"algorithm": {"name": algorithm, "epochs": 5} | (params or {}), "target": target}
    return TrainSpec.model_validate(requested | {"features": ["a", "b", "c", "town"]} | more)


def run(rows, memory_bytes=SMALL, **spec):
    return train(plan(spec_of(**spec), sheet(rows), rows.num_rows, memory_bytes), rows, data_digest="sha256:0")


def metric(trained, name):
    return next(one for one in trained.report.test if one.name == name and one.label is None)


def looked(rows, **spec):
    made = spec_of(**spec)
    planned = plan(made, sheet(rows), rows.num_rows, SMALL)._replace(memory_limit=math.inf)  # room for hashes
    return Stream.look(planned, rows, lambda *_: None)


@pytest.mark.parametrize(
    ("algorithm", "target", "name"),
    [("linear_sgd", "score", "r2"), ("linear_sgd", "sign", "accuracy"), ("perceptron", "sign", "accuracy")],
)
def test_the_metrics_are_those_of_the_whole(algorithm, target, name):
    rows = table()
    batches = run(rows, algorithm=algorithm, target=target)
    whole = run(rows, np.inf, algorithm=algorithm, target=target)
    one, other = metric(batches, name), metric(whole, name)
    assert one.value == pytest.approx(other.value, abs=0.02)
    assert one.n < other.n
    report = batches.report
    assert report.rows_train + report.rows_test == whole.report.rows_train + whole.report.rows_test
    assert f"fitted on the other {report.rows_train}" in report.evidence
    assert any("in batches" in warning for warning in report.warnings)
    assert "batch_rows" in decode(batches.blob).receipt
    assert "batch_rows" not in decode(whole.blob).receipt
    (town,) = [one for one in decode(batches.blob).inputs if one.name == "town"]
    assert town.levels == ["Bonn", "Köln", "Trier", "Ulm"]


def test_the_same_receipt_gives_the_same_bytes_however_the_rows_are_cut():
    rows = table(4500)
    cut = pa.concat_tables([rows.slice(start, 37) for start in range(0, 4500, 37)])
    assert run(rows).blob == run(cut).blob
    assert run(rows, seed=1).blob != run(rows).blob


def test_every_row_with_a_target_is_held_out_or_learned_once_a_turn():
    rows = table()
    stream = looked(rows)
    seen = [
        chunk.raw.values[chunk.target.rows, 1]
        for turn in (0, 1)
        for chunk, _ in stream.source.batches(turn, stream.kept)
    ]
    b, there = rows["b"].to_numpy(), rows["score"].is_valid().to_numpy()
    held, _ = stream.source.draw.of(0, ROWS)
    held[stream.kept] = False
    once = np.concatenate(seen[: len(seen) // 2])
    np.testing.assert_array_equal(np.sort(once), np.sort(b[there & ~held]))
    assert len(once) == stream.rows
    evaluated = rows["b"].to_numpy()[stream.numbers[stream.split.test]]
    assert not np.isin(evaluated, np.concatenate(seen)).any()
    assert not np.array_equal(once[:50], np.concatenate(seen[len(seen) // 2 :])[:50]), "each turn has its own order"


def test_what_becomes_of_a_row_needs_no_memory():
    draw = Draw(7, 0.2, 0.5)
    held, sampled = draw.of(0, 10_000)
    for first in (0, 1, 999, 9_990):
        again = draw.of(first, 10)
        np.testing.assert_array_equal(again, [held[first : first + 10], sampled[first : first + 10]])
    assert held.mean() == pytest.approx(0.2, abs=0.02)
    assert sampled[~held].mean() == pytest.approx(0.5, abs=0.03)
    assert sampled[held].all()


def test_rare_classes_and_categories_are_learned():
    rows = table(missing=False)
    names = rows["town"].to_pylist()
    names[1234], names[4321] = "Aachen", "Zwickau"
    marks = rows["sign"].to_pylist()
    marks[77], marks[5999] = "never", "once"
    rows = rows.set_column(3, "town", pa.array(names)).set_column(5, "sign", pa.array(marks))
    model = decode(run(rows, target="sign", algorithm="perceptron").blob)
    assert model.classes == ("minus", "never", "once", "plus")
    assert {"Aachen", "Zwickau"} <= set(next(one for one in model.inputs if one.name == "town").levels)


def test_ranges_are_those_of_all_rows_to_learn_from():
    rows = table()
    stream = looked(rows)
    (b,) = [one for one in decode(run(rows).blob).inputs if one.name == "b"]
    held, _ = stream.source.draw.of(0, ROWS)
    held[stream.kept] = False
    learned = rows["b"].to_numpy()[~held & rows["score"].is_valid().to_numpy()]
    assert (b.minimum, b.maximum) == (learned.min(), learned.max())


def test_faults_point_at_the_row_of_the_table():
    numbers = table()["b"].to_numpy().copy()
    numbers[4567] = np.inf
    with pytest.raises(InvalidData) as refusal:
        run(table().set_column(1, "b", pa.array(numbers)))
    assert [fault.pointer for fault in refusal.value.faults] == ["/rows/4567/b"]
    weights = np.ones(ROWS)
    weights[5001] = 0.0
    with pytest.raises(InvalidData) as refusal:
        run(table(missing=False).set_column(6, "weight", pa.array(weights)), weights="weight")
    assert [fault.pointer for fault in refusal.value.faults] == ["/rows/5001/weight"]


def test_outliers_are_reported_by_their_row_of_the_table():
    rows = table(missing=False)
    score = rows["score"].to_numpy().copy()
    stream = looked(rows)
    row = int(stream.numbers[stream.split.test][3])
    score[row] += 1e4
    report = run(rows.set_column(4, "score", pa.array(score))).report
    assert next(part for part in report.residuals if part.part == "test").outlier_rows[0] == row


def test_functions_of_the_target_are_turned_back():
    rows = table(missing=False)
    rows = rows.set_column(4, "score", pa.array(np.exp(rows["score"].to_numpy() / 20)))
    trained = run(rows, preprocessing={"target": "log"})
    assert metric(trained, "r2").value > 0.9


def test_cross_validation_is_that_of_the_sample():
    report = run(table(), validation={"method": "kfold", "folds": 3}).report
    assert len(report.folds) == 3
    assert sum(fold.rows for fold in report.folds) < report.rows_train / 2


def test_a_target_that_is_mostly_missing():
    rows = table()
    score = np.full(ROWS, None)
    score[[5, 3000, 3001, 5998]] = [1.0, 2.0, 3.0, 4.0]
    sparse = rows.set_column(4, "score", pa.array(score.tolist(), pa.float64()))
    stream = Stream.look(plan(spec_of(), sheet(rows), ROWS, SMALL), sparse, lambda *_: None)
    assert stream.rows + stream.split.test.size >= 2


def test_the_plan_says_how():
    columns = sheet(table())
    how = spec_of()
    small, large = (plan(how, columns, rows, 400 << 20) for rows in (10_000, 100_000_000))
    assert small.batch_rows is None
    assert large.batch_rows == 6000 // 8
    assert large.memory_bytes < 400 << 20
    assert "in batches" in large.warnings[-1]
    assert plan(how, columns, 100_000_000).memory_bytes > 10 * large.memory_bytes
    ridge = TrainSpec.model_validate({"algorithm": {"name": "ridge"}, "target": "score", "features": list("abc")})
    assert plan(ridge, columns, 1_000_000, 300 << 20).batch_rows == 6000 // 3
    with pytest.raises(InvalidRequest, match=r"about 31\.\d GiB of memory and a job has 400 MiB: at most \d+ rows fit"):
        plan(ridge, columns, 200_000_000, 400 << 20)


def test_one_pass_of_batches_is_one_pass_over_the_rows():
    """Perceptron: fit and updates with one epoch are the pass over all rows in this order, to the last bit."""
    rng = np.random.default_rng(0)
    data = Data.of(Task.CLASSIFICATION, rng.normal(size=(100, 3)), rng.integers(0, 3, 100), classes=3)
    algorithm = find("perceptron").algorithm
    params = algorithm.params(epochs=1, shuffle=False)
    chunks = [data.take(np.arange(start, start + 20)) for start in range(0, 100, 20)]
    batches = fit_batches(algorithm, params, lambda _: iter(chunks), Context.of(0))
    whole = algorithm.fit(params, data, Context.of(0))
    assert batches.state.coef.tobytes() == whole.state.coef.tobytes()
    assert batches.curves["error_rate"] == pytest.approx(whole.curves["error_rate"])


def test_batches_end_when_they_change_nothing():
    x = np.random.default_rng(0).normal(size=(200, 2))
    x[:, 0] += np.sign(x[:, 0])
    data = Data.of(Task.CLASSIFICATION, x, x[:, 0] > 0)
    algorithm = find("perceptron").algorithm
    chunks = [data.take(np.arange(start, start + 50)) for start in range(0, 200, 50)]
    result = []
    fit = fit_batches(
        algorithm, algorithm.params(), lambda _: iter(chunks), Context.of(0, lambda done, **_: result.append(done))
    )
    assert fit.converged
    assert fit.iterations < 100
    assert fit.curves["error_rate"][-1] == 0
    assert result == sorted(result)
