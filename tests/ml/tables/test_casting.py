"""Columns used as another kind than the dataset has them: in training, in evaluation and in predictions."""

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.base.errors import InvalidRequest
from app.ml.contract.columns import ColumnKind, TableColumn
from app.ml.contract.progress import unheard
from app.ml.jobs import evaluate, search
from app.ml.kinds.job import Inputs, JobContext, Loaded, Sheet, Source, Version
from app.ml.models.header import read_header
from app.ml.models.model import decode, digest
from app.ml.tables.cell_casting import recast_cells
from app.ml.tables.rows import read_rows
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train

NOWHERE = "00000000-0000-7000-8000-000000000000"
ROWS = 120
STORES = np.arange(ROWS) % 6
EFFECT = np.array([5.0, -3.0, 8.0, 0.0, -7.0, 2.0])
PRICES = 10 + np.arange(ROWS) % 11
TABLE = pa.table({
    "store": pa.array(STORES.astype(float)),
    "price": [f"{price}" if place % 40 else "unknown" for place, price in enumerate(PRICES)],
    "when": [f"{1 + place % 28:02d}.03.2024" for place in range(ROWS)],
    "open": [bool(place % 2) for place in range(ROWS)],
    "y": EFFECT[STORES] + 0.1 * PRICES,
})  # fmt: skip
SHEET = [
    TableColumn("store", "numeric", 0, 6),
    TableColumn("price", "text", 0, 12),
    TableColumn("when", "text", 0, 28),
    TableColumn("open", "boolean", 0, 2),
    TableColumn("y", "numeric", 0, 66),
]
KINDS = {"store": "categorical", "price": "numeric", "when": "date:DMY", "open": "categorical"}


def spec(**more):
    return TrainSpec.model_validate({"target": "y", "algorithm": {"name": "ridge", "l2": 1e-6}} | more)


@pytest.fixture(scope="module")
def trained():
    expected = spec(kinds=KINDS)
    source = Source(Sheet("sha256:0", ROWS, tuple(SHEET)), iter([TABLE[:50], TABLE[50:]])).used_as(expected.kinds)
    return train(plan(expected, source.sheet.columns, ROWS), source.read(), data_digest="sha256:0")


def test_columns_are_used_as_the_kinds_that_are_given(trained):
    model = decode(trained.blob)
    kinds = {column.name: (column.kind, column.source_kind) for column in model.inputs}
    assert kinds == {
        "store": ("categorical", "numeric"),
        "price": ("numeric", "text"),
        "when": ("datetime", "text"),
        "open": ("categorical", "boolean"),
    }
    assert model.inputs[0].levels == ["0", "1", "2", "3", "4", "5"]
    assert model.inputs[3].levels == ["false", "true"]
    r2 = next(one for one in trained.report.test if one.name == "r2")
    assert r2.value > 0.99
    assert plan(spec(kinds=KINDS), SHEET, ROWS).features == ("store", "price", "when", "open")


@pytest.mark.parametrize("store", [3, 3.0, "3"])
def test_a_number_used_as_a_category_is_sent_as_number_or_text(trained, store):
    model = decode(trained.blob)
    row = {"store": store, "price": 15, "when": "2024-03-05", "open": True}
    sent = read_rows({"rows": [row]}, model.inputs, max_rows=1)
    predicted = model.predict(sent.table)
    assert predicted.values[0] == pytest.approx(EFFECT[3] + 1.5, abs=0.3)
    assert not predicted.flags


@pytest.mark.parametrize("store", [True, 2**70])
def test_what_is_no_category_of_a_number_is_a_fault(trained, store):
    model = decode(trained.blob)
    row = {"store": store, "price": 15, "when": "2024-03-05", "open": "true"}
    sent = read_rows({"rows": [row]}, model.inputs, max_rows=1, let_bad_rows_pass=True)
    assert [fault.pointer for fault in sent.faults] == ["/rows/0/store"]


def test_texts_that_cannot_be_read_are_missing_and_warned_of():
    (result,) = (
        messages for messages in plan(spec(kinds={"price": "numeric"}), SHEET, ROWS).warnings if "'price'" in messages
    )
    assert "cannot be read as numeric" in result
    cells = recast_cells(TABLE["price"], ColumnKind.NUMERIC)
    assert cells.null_count == 3
    assert cells.to_pylist()[1:4] == [11.0, 12.0, 13.0]


def test_kinds_of_columns_that_do_not_exist_or_cannot_be_used_so_are_faults():
    with pytest.raises(InvalidRequest) as refusal:
        plan(spec(kinds={"stor": "categorical", "y": "boolean", "open": "date"}), SHEET, ROWS)
    faults = [(fault.pointer, fault.code) for fault in refusal.value.faults]
    assert faults == [("/kinds/stor", "unknown_column"), ("/kinds/y", "wrong_kind"), ("/kinds/open", "wrong_kind")]
    assert "did you mean 'store'" in refusal.value.faults[0].detail


def test_a_column_used_as_text_is_no_feature():
    assert "store" not in plan(spec(kinds={"store": "text"}), SHEET, ROWS).features


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53).map(float)))
def test_the_category_of_a_number_is_read_back_as_the_number(numbers):
    texts = recast_cells(pa.array(numbers, pa.float64()), ColumnKind.CATEGORICAL).to_pylist()
    assert [float(text) for text in texts] == numbers
    assert not any(text.endswith(".0") for text in texts)
    assert len(set(texts)) == len(set(numbers))


def test_other_kinds_become_categories_by_their_plain_text():
    moment = datetime(2024, 3, 5, 14, 5, tzinfo=UTC)
    cells = pa.array([moment, None], pa.timestamp("us", "UTC"))
    assert recast_cells(cells, ColumnKind.CATEGORICAL).to_pylist()[1] is None
    assert recast_cells(cells, ColumnKind.CATEGORICAL).to_pylist()[0].startswith("2024-03-05T14:05:00")
    assert recast_cells(pa.array([3, None]), ColumnKind.CATEGORICAL).to_pylist() == ["3", None]
    assert recast_cells(pa.array([True, False]), ColumnKind.NUMERIC).to_pylist() == [1.0, 0.0]
    dates = recast_cells(pa.array([20240305, 7]), ColumnKind.DATETIME).to_pylist()
    assert dates == [datetime(2024, 3, 5, tzinfo=UTC), None]


def test_a_model_is_evaluated_on_a_dataset_of_the_kinds_that_its_training_had(trained):
    model = decode(trained.blob)
    version = Version("m", 1, digest(trained.blob), read_header(trained.blob))
    sheet = Sheet("sha256:other", ROWS, tuple(SHEET))
    request = evaluate.KIND.request.model_validate({"model": "m", "dataset": NOWHERE, "rows": "all"})
    assert evaluate.KIND.check(request, JobContext((sheet,), (version,))).algorithms == ("ridge",)
    given = Inputs((Source(sheet, iter([TABLE])),), (Loaded(version, model),))
    result = evaluate.KIND.run(request, given, unheard).result
    (r2,) = (metric.value for metric in result.metrics if metric.name == "r2")
    assert r2 > 0.99


def test_a_search_uses_the_kinds_that_are_given():
    sheet = Sheet("sha256:0", ROWS, tuple(SHEET))
    expected = {"target": "y", "algorithm": {"name": "ridge", "l2": 1e-6}, "kinds": KINDS, "dataset": NOWHERE}
    request = search.KIND.request.model_validate(expected)
    search.KIND.check(request, JobContext((sheet,)))
    result = search.KIND.run(request, Inputs((Source(sheet, iter([TABLE])),)), unheard).result
    assert result.candidates[0].validation.value < 1
