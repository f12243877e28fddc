"""Tables of pandas, polars and pyarrow: what goes up comes down equal, and predictions come back as they were sent."""

from datetime import UTC, date, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pandas.testing import assert_frame_equal
from polars.testing import assert_frame_equal as assert_polars_equal

import valiant
from valiant import frames

ROWS = 40


@pytest.fixture(scope="module")
def numbers():
    """A training table: two numbers and a category with missing values, and a target that follows from them."""
    x = np.linspace(-2, 2, ROWS)
    names = ["low", "mid", "high"]
    kind = [None if i % 10 == 9 else names[i % 3] for i in range(ROWS)]
    return {"x": x, "z": np.where(np.arange(ROWS) % 8 == 7, np.nan, np.arange(ROWS) % 5.0), "kind": kind, "y": 3 * x}


@pytest.fixture(scope="module")
def model(service, numbers):
    dataset = service.upload(pa.table(numbers), name="numbers")
    return service.train(dataset, target="y", algorithm="ridge", model="line")


def cells():
    """Every kind of value, with missing ones."""
    when = datetime(2026, 5, 4, 10, 30, 0, 123456)  # noqa: DTZ001  a time without a zone is one kind
    return {
        "number": [0.1, None, -1e300, 2.0**-1074],
        "whole": [1, 2, 3, 2**53],
        "truth": [True, False, None, True],
        "text": ["a", None, "ä", "b,\n"],
        "day": [date(2026, 1, 2), None, date(1969, 12, 31), date(2000, 2, 29)],
        "moment": [when, None, when, when],
        "zoned": [when.replace(tzinfo=UTC), None, when.replace(tzinfo=UTC), when.replace(tzinfo=UTC)],
    }


def tables():
    table = pa.table(cells()).append_column("level", pa.array(["b", "a", None, "b"]).dictionary_encode())
    frame = pd.DataFrame(cells()).assign(
        level=pd.Categorical(["b", "a", None, "b"], ["unused", "b", "a"], ordered=True)
    )
    frame["day"] = pd.to_datetime(frame["day"]).astype("datetime64[us]")
    polar = pl.DataFrame(cells()).with_columns(
        pl.Series("level", ["b", "a", None, "b"], pl.Categorical),
        pl.Series("one", ["b", "a", None, "b"], pl.Enum(["a", "b"])),
    )
    return {"pyarrow": table, "pandas": frame, "polars": polar}


@pytest.mark.parametrize("package", ["pyarrow", "pandas", "polars"])
def test_a_table_comes_back_equal(service, package):
    table = tables()[package]
    back = service.upload(table, name="cells").frame(like=table)
    if package == "pandas":
        assert_frame_equal(back, table)
    elif package == "polars":
        assert_polars_equal(back, table)
    else:
        assert back.equals(table)
        assert back.schema == table.schema


def test_without_a_frame_it_is_a_table_of_pyarrow(service, iris):
    assert isinstance(iris.frame(), pa.Table)


def test_predictions_of_pandas_have_its_index(model, numbers):
    frame = pd.DataFrame(numbers, index=[f"row {i}" for i in range(ROWS)])
    given = model.predict(frame, confidence=0.9)
    assert list(given.columns) == ["prediction", "lower", "upper", "flags"]
    assert given.index.equals(frame.index)
    assert (given["lower"] <= given["prediction"]).all()
    half = frame.iloc[::-2]
    pd.testing.assert_series_equal(model.predict(half)["prediction"], given.loc[half.index, "prediction"])


def test_every_kind_of_frame_has_the_same_predictions(model, numbers):
    table = pa.table(numbers)
    rows = [{name: None if pd.isna(cell) else cell for name, cell in row.items()} for row in table.to_pylist()]
    expected = model.predict(rows)
    kinds = {pa.Table: table, pl.DataFrame: pl.from_arrow(table), pd.DataFrame: table.to_pandas()}
    for kind, frame in kinds.items():
        given = model.predict(frame)
        assert type(given) is kind
        assert (
            list(given["prediction"].to_pylist() if kind is pa.Table else given["prediction"]) == expected.predictions
        )
    categorical = pl.from_arrow(table).with_columns(pl.col("kind").cast(pl.Categorical))
    assert model.predict(categorical)["prediction"].to_list() == expected.predictions
    assert model.predict(table.to_pandas().astype({"kind": "category"}))["prediction"].tolist() == expected.predictions


def test_large_tables_go_in_several_requests_to_one_version(service, model, numbers, monkeypatch):
    whole = model.predict(pa.table(numbers))
    monkeypatch.setattr(frames, "BATCH_ROWS", 7)
    assert service.model("line").predict(pa.table(numbers), alias=None).equals(whole)
    assert len(list(frames.batches(pa.table(numbers)))) == 6


def test_a_table_without_rows_is_refused(model, numbers):
    with pytest.raises(valiant.InvalidRequest, match="at least one row"):
        model.predict(pa.table(numbers).slice(0, 0))


def test_packing_is_done_batch_by_batch(monkeypatch):
    monkeypatch.setattr(frames, "BATCH_ROWS", 10)
    table = pa.table({"x": np.arange(35.0)})
    chunks = list(frames.packed(table))
    assert len(chunks) == 5
    assert pa.ipc.open_stream(b"".join(chunks)).read_all() == table


def test_queries_take_tables_too(service, model, numbers):
    found = model.query("intervals", rows=pa.table(numbers).slice(6, 2).drop(["y"]), confidence=0.5)
    assert [flag["column"] for flag in found["flags"]] == ["z"]
