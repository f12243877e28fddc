"""The job that predicts a dataset: batches that are the same at every attempt."""

import numpy as np
import pyarrow as pa
import pytest

from app.base.errors import InvalidRequest
from app.ml.contract.columns import TableColumn
from app.ml.jobs import predict
from app.ml.jobs.predict import PredictJobRequest
from app.ml.kinds.job import Inputs, JobContext, Loaded, Sheet, Source, Version
from app.ml.models.header import read_header
from app.ml.models.model import decode
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train

ROWS = 1000
COLUMNS = [TableColumn(name, "numeric", 0, ROWS) for name in "abz"]
DATASET = "01a20b10-3da6-75c2-a83d-decb514e2abb"


@pytest.fixture(scope="module")
def table():
    x = np.random.default_rng(0).normal(size=(ROWS, 2))
    return pa.table({"a": x[:, 0], "b": x[:, 1], "z": x @ [1.0, 2.0]})


@pytest.fixture(scope="module")
def loaded(table):
    spec = TrainSpec.model_validate({"target": "z", "algorithm": {"name": "ridge"}})
    blob = train(plan(spec, COLUMNS, ROWS), table, data_digest="sha256:0").blob
    return Loaded(Version("m", 1, "sha256:1", read_header(blob)), decode(blob))


def ran(table, loaded, written=(), **more):
    parts = (table.slice(start, 300) for start in range(0, ROWS, 300))
    source = Source(Sheet("sha256:0", ROWS, tuple(COLUMNS)), parts)
    request = PredictJobRequest.model_validate({"model": "m", "dataset": DATASET, **more})
    messages = []
    inputs = Inputs((source,), (loaded,), written=iter(written))
    outcome = predict.run(request, inputs, lambda fraction, message, _: messages.append((fraction, message)))
    return list(outcome.table.batches), messages, outcome


def test_what_is_written_is_not_predicted_again(monkeypatch, table, loaded):
    monkeypatch.setattr(predict, "CELLS", 500)
    whole, messages, outcome = ran(table, loaded, keep=["a"])
    assert [len(batch) for batch in whole] == [125, 125, 50] * 3 + [100]
    assert messages[0] == (0, "predicted 0 rows")
    assert len(messages) == len(whole)
    for count in (0, 1, 4, len(whole)):
        resumed, messages, _ = ran(table, loaded, whole[:count], keep=["a"])
        assert len(messages) == len(whole) - count
        assert all(one.equals(other) for one, other in zip(resumed, whole, strict=True))
        if messages:
            assert messages[0][1] == f"predicted {sum(map(len, whole[:count]))} rows"
    assert outcome.result.rows == ROWS
    assert outcome.table.name == "m-predictions"
    expected = loaded.model.predict(table).values
    found = np.concatenate([batch["prediction"].to_numpy() for batch in whole])
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_prediction_that_is_not_finite_is_null(table, loaded):
    far = table.set_column(0, "a", pa.array([1e308] * ROWS)).set_column(1, "b", pa.array([1e308] * ROWS))
    (first, *_), _, _ = ran(far, loaded)
    assert first["prediction"].null_count in {0, len(first)}
    assert first["flags"][0].as_py() == "outside_range:a outside_range:b"


def test_contributions_and_reasons_are_columns(table, loaded):
    (first, *_), _, _ = ran(table, loaded, include=["contributions"], top=1)
    names = ["contribution_base", "contribution_raw", "contribution_of_a", "contribution_of_b", "reasons"]
    assert first.column_names == ["prediction", *names, "flags"]
    base, raw, of_a, of_b = (first[name].to_numpy() for name in names[:4])
    np.testing.assert_allclose(base + of_a + of_b, raw, rtol=0, atol=1e-9)
    np.testing.assert_allclose(raw, first["prediction"].to_numpy(), rtol=1e-12)
    largest = np.where(np.abs(of_a) > np.abs(of_b), "a", "b")
    assert [text.split(" = ")[0] for text in first["reasons"].to_pylist()] == largest.tolist()


@pytest.mark.parametrize(
    ("more", "pointer"),
    [
        ({"top": 2}, "/top"),
        ({"include": ["contributions"], "keep": ["contribution_of_a"]}, "/keep/0"),
        ({"include": ["contributions", "distance"]}, "/include/1"),
    ],
)
def test_what_contributions_exclude_is_a_fault(loaded, more, pointer):
    columns = (*COLUMNS, TableColumn("contribution_of_a", "numeric", 0, ROWS))
    request = PredictJobRequest.model_validate({"model": "m", "dataset": DATASET, **more})
    sheet = Sheet("sha256:0", ROWS, columns)
    with pytest.raises(InvalidRequest) as refused:
        predict.check(request, JobContext((sheet,), (loaded.version,)))
    assert [fault.pointer for fault in refused.value.faults] == [pointer]
