"""JSON rows → a table: what fits, what does not, and that nothing is guessed."""

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.base.errors import BodyTooLarge, InvalidData, InvalidRequest
from app.ml.contract.columns import InputColumn
from app.ml.contract.missing_markers import MISSING as MISSING_MARKERS
from app.ml.contract.notation import Notation
from app.ml.tables.cells import flaw, read_cells
from app.ml.tables.rows import MAX_FAULTS, read_rows

AGE, PLAN = InputColumn(name="age", kind="numeric"), InputColumn(name="plan", kind="categorical", levels=["a"])
ACTIVE, SINCE = InputColumn(name="active", kind="boolean"), InputColumn(name="since", kind="datetime")
INPUTS = (AGE, PLAN, ACTIVE, SINCE)
GOOD = {"age": 31, "plan": "a", "active": True, "since": "2024-02-29T12:00:00Z"}


def read(body, inputs=INPUTS, max_rows=1000, **options):
    return read_rows(body, inputs, max_rows=max_rows, **options)


def faults(body, error=InvalidData, **options):
    with pytest.raises(error) as caught:
        read(body, **options)
    return [(fault.pointer, fault.code) for fault in caught.value.faults]


def test_both_forms_give_the_same_table():
    rows = read({"rows": [GOOD, GOOD | {"age": 2.5, "plan": None}]})
    columns = read(
        {
            "columns": ["since", "age", "active", "plan"],
            "data": [["2024-02-29T12:00:00Z", 31, True, "a"], ["2024-02-29T12:00:00Z", 2.5, True, None]],
        }
    )
    assert rows.table.equals(columns.table)
    assert rows.table.schema.types == [pa.float64(), pa.string(), pa.bool_(), pa.timestamp("us", "UTC")]
    assert rows.table["age"].to_pylist() == [31.0, 2.5]
    assert rows.table["plan"].to_pylist() == ["a", None]
    assert rows.good.tolist() == [0, 1]
    assert not rows.faults
    assert not rows.ignored


FITS = {
    "numeric": {int, float, "big", "tiny", "long"},
    "categorical": {str, "digits", "iso"},
    "text": {str, "digits", "iso"},
    "boolean": {bool},
    "datetime": {"iso"},
}
VALUES = {
    int: 1,
    float: 1.0,
    "big": 2**53,
    "tiny": -5e-324,
    bool: True,
    str: "pro",
    "digits": "1",
    "iso": "2024-01-01",
    "long": 2**63 - 1,
    "too long": 2**63,
    "huge": 10**400,
    "surrogate": "\ud800",
    "list": [1],
    "object": {"a": 1},
}


@pytest.mark.parametrize("kind", FITS)
@pytest.mark.parametrize("value", VALUES)
def test_no_value_is_taken_for_another_kind(kind, value):
    column = InputColumn(name="x", kind=kind)
    array, flawed = read_cells(column, [None, VALUES[value]])
    assert flawed == ([] if value in FITS[kind] else [1])
    assert (array[1].as_py() is None) == bool(flawed)
    assert (flaw(column, VALUES[value]) is None) == (not flawed)
    assert array[0].as_py() is None


NUMERIC = {"numeric"}
MISSING = {
    "": FITS.keys(),
    " \t": FITS.keys(),
    "NA": {"numeric", "boolean", "datetime"},
    " nan ": {"numeric", "boolean", "datetime"},
    float("inf"): NUMERIC,
    float("nan"): NUMERIC,
}


@pytest.mark.parametrize("kind", FITS)
@pytest.mark.parametrize("value", MISSING)
def test_what_an_upload_reads_as_missing_is_missing(kind, value):
    array, flawed = read_cells(InputColumn(name="x", kind=kind), [value])
    if kind in MISSING[value]:
        assert (array.to_pylist(), flawed) == ([None], [])
        assert flaw(InputColumn(name="x", kind=kind, nullable=False), value).code == "missing_value"
    elif isinstance(value, str) and kind in {"categorical", "text"}:
        assert array.to_pylist() == [value.strip()]
    else:
        assert flawed == [0]


@pytest.mark.parametrize("value", ["-999", -999, -999.0, "unknown "])
def test_markers_of_the_training_data_are_missing_in_other_forms_too(value):
    column = InputColumn(name="x", kind="numeric", notation=Notation(missing=("-999", "unknown")))
    array, flawed = read_cells(column, [value, 5])
    assert (array.to_pylist(), flawed) == ([None, 5], [])


def test_dates_may_be_written_as_in_the_training_data():
    column = InputColumn(name="x", kind="datetime", notation=Notation(dates="DMY"))
    array, flawed = read_cells(column, ["29.02.2024", "2024-02-29", "30.02.2024", None])
    assert [value and value.day for value in array.to_pylist()] == [29, 29, None, None]
    assert flawed == [2]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("20240229", "2024-02-29T00:00:00+00:00"),
        ("2024-02-29", "2024-02-29T00:00:00+00:00"),
        ("2024-02-29T23:30:00.25", "2024-02-29T23:30:00.250000+00:00"),
        ("2024-02-29 23:30:00-02:00", "2024-03-01T01:30:00+00:00"),
        ("1969-12-31T23:59:59Z", "1969-12-31T23:59:59+00:00"),
    ],
)
def test_moments_are_utc(text, moment):
    mixed = ["2024-01-01T00:00:00Z", text]
    assert read_cells(SINCE, mixed)[0][1].as_py().isoformat() == moment
    assert read_cells(SINCE, [text])[0][0].as_py().isoformat() == moment


@pytest.mark.parametrize("text", ["now", "2023-02-29", "29.02.2024", "12:00", "2024-02-29T25:00:00Z"])
def test_what_is_no_moment(text):
    assert read_cells(SINCE, [text, "2024-01-01"])[1] == [0]


def test_a_column_that_may_not_be_null():
    strict = (AGE.model_copy(update={"nullable": False}), PLAN)
    assert faults({"rows": [{"age": None, "plan": None}]}, inputs=strict) == [("/rows/0/age", "missing_value")]


def test_missing_columns_are_one_fault_that_names_them_all():
    for body in ({"rows": [{"age": 1}, {"since": None}, {}]}, {"columns": ["age", "since"], "data": [[1, None]]}):
        with pytest.raises(InvalidData) as caught:
            read(body)
        (fault,) = caught.value.faults
        assert fault.code == "missing_columns"
        assert "plan, active" in fault.detail
        assert "age" not in fault.detail


def test_a_column_missing_in_some_rows_is_a_fault_of_those():
    rows = [GOOD, {"age": 1}, 7, GOOD]
    assert faults({"rows": rows}) == [("/rows/1", "missing_columns"), ("/rows/2", "not_an_object")]


def test_extra_columns_are_named_in_the_order_they_came():
    assert read({"rows": [GOOD | {"zip": 1, "ü/~": 2}, GOOD, GOOD | {"b": [1]}]}).ignored == ["zip", "ü/~", "b"]
    wide = {"columns": ["age", "zip", "plan", "active", "since"], "data": [[1, {}, "a", False, None]]}
    assert read(wide).ignored == ["zip"]


def test_every_fault_is_listed_at_its_place():
    bad = {"age": "31", "plan": 1, "active": 0, "since": "soon"}
    assert faults({"rows": [GOOD, bad, GOOD | {"age": True}]}) == [
        ("/rows/1/age", "not_a_number"),
        ("/rows/1/plan", "not_a_string"),
        ("/rows/1/active", "not_a_boolean"),
        ("/rows/1/since", "not_a_datetime"),
        ("/rows/2/age", "not_a_number"),
    ]
    data = [[1, "a"], ["1", "a"], [1], "no", [1, "a", 2], [1, 1.0]]
    assert faults({"columns": ["age", "plan"], "data": data}, inputs=(PLAN, AGE)) == [
        ("/data/1/0", "not_a_number"),
        ("/data/2", "ragged_row"),
        ("/data/3", "ragged_row"),
        ("/data/4", "ragged_row"),
        ("/data/5/1", "not_a_string"),
    ]


def test_pointers_are_escaped():
    odd = InputColumn(name="a/b~c", kind="numeric")
    assert faults({"rows": [{"a/b~c": "x"}]}, inputs=(odd,)) == [("/rows/0/a~1b~0c", "not_a_number")]


def test_many_faults_are_counted_and_the_first_listed():
    with pytest.raises(InvalidData) as caught:
        read({"columns": ["age"], "data": [["x"]] * 777}, inputs=(AGE,))
    assert [fault.pointer for fault in caught.value.faults] == [f"/data/{i}/0" for i in range(MAX_FAULTS)]
    assert "777" in caught.value.detail


def test_bad_rows_may_pass():
    rows = [GOOD, GOOD | {"age": "secret", "plan": 1}, "no row", {"age": 3}, GOOD | {"age": 5}]
    incoming = read({"rows": rows}, let_bad_rows_pass=True)
    assert incoming.rows == 5
    assert incoming.good.tolist() == [0, 4]
    assert incoming.table["age"].to_pylist() == [31.0, 5.0]
    assert [fault.pointer for fault in incoming.faults] == ["/rows/1/age", "/rows/2", "/rows/3"]


def test_all_rows_may_be_bad():
    incoming = read({"rows": ["x", 1]}, let_bad_rows_pass=True)
    assert incoming.table.num_rows == 0
    assert [fault.pointer for fault in incoming.faults] == ["/rows/0", "/rows/1"]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ([], ""),
        ({}, ""),
        (None, ""),
        ({"rows": [GOOD], "columns": ["age"]}, ""),
        ({"rows": [GOOD], "more": 1}, ""),
        ({"columns": ["age"]}, ""),
        ({"rows": []}, "/rows"),
        ({"rows": GOOD}, "/rows"),
        ({"columns": ["age"], "data": []}, "/data"),
        ({"columns": [], "data": [[]]}, "/columns"),
        ({"columns": "age", "data": [[1]]}, "/columns"),
        ({"columns": ["age", 1], "data": [[1, 1]]}, "/columns/1"),
        ({"columns": ["age", "plan", "age"], "data": [[1, "a", 1]]}, "/columns/2"),
    ],
)
def test_bodies_of_neither_form(body, pointer):
    assert [place for place, _ in faults(body, error=InvalidRequest)] == [pointer]


def test_too_many_rows():
    assert read({"rows": [GOOD] * 10}, max_rows=10).rows == 10
    with pytest.raises(BodyTooLarge):
        read({"rows": [GOOD] * 11}, max_rows=10)


def test_rows_without_their_columns_cost_no_memory():
    """A short body must not become a table as large as rows times columns."""
    import tracemalloc

    inputs = [InputColumn(name=f"c{i}", kind="numeric") for i in range(2000)]
    body = {"rows": [dict.fromkeys((column.name for column in inputs), 1.0)] + [{}] * 20_000}
    tracemalloc.start()
    incoming = read(body, inputs=inputs, max_rows=100_000, let_bad_rows_pass=True)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(incoming.faults) == 20_000
    assert peak < 100 << 20  # the full table would have 320 MB


def test_nothing_sent_is_repeated():
    secret = "s3cret-value"
    with pytest.raises(InvalidData) as caught:
        read({"rows": [{"age": secret, "plan": [secret], "active": secret, "since": secret}]})
    assert secret not in repr(caught.value.faults) + caught.value.detail


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
cells = scalars | st.lists(scalars, max_size=2)


@given(st.lists(st.tuples(cells, cells, cells, cells), min_size=1, max_size=8))
def test_rows_and_columns_agree_on_anything(data):
    names = [column.name for column in INPUTS]
    by_column = read({"columns": names, "data": [list(row) for row in data]}, let_bad_rows_pass=True)
    by_row = read({"rows": [dict(zip(names, row, strict=True)) for row in data]}, let_bad_rows_pass=True)
    assert by_row.table.equals(by_column.table)
    assert by_row.good.tolist() == by_column.good.tolist()
    bad = {int(fault.pointer.split("/")[2]) for fault in by_row.faults}
    assert sorted(bad | set(by_row.good.tolist())) == list(range(len(data)))
    ages = [data[row][0] for row in by_row.good]
    assert by_row.table["age"].to_pylist() == [float(age) if isinstance(age, int | float) else None for age in ages]
    assert {age.strip() for age in ages if isinstance(age, str)} <= {*MISSING_MARKERS}
    plans = [data[row][1] and (data[row][1].strip() or None) for row in by_row.good]
    assert json.dumps(by_row.table["plan"].to_pylist()) == json.dumps([plan or None for plan in plans])


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_floats_keep_every_bit(values):
    array, _ = read_cells(AGE, values)
    assert np.array(array).tobytes() == np.array(values).tobytes()
