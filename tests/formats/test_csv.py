"""Numbers that come as CSV: the reader of Arrow gives the same bits as the general one, or leaves the body to it."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.base.errors import InvalidData, InvalidEncoding, ValiantError
from app.formats.csv import csv_document, csv_numbers
from app.ml.contract.columns import InputColumn
from app.ml.contract.notation import Notation
from app.ml.preparation.preparation import Preparation
from app.ml.preparation.state import PreparationState
from app.ml.tables.rows import read_rows

MOST = 5
NAMES = ("a", "ü b")
NEUTRAL = np.ones(2)
INPUTS = tuple(InputColumn(name=name, kind="numeric", nullable=True) for name in NAMES)
PREPARATION = Preparation(INPUTS, PreparationState(NEUTRAL, NEUTRAL, NEUTRAL, NEUTRAL > 1, NEUTRAL > 1))
ODD = [
    "",
    " ",
    "\t1",
    "1 ",
    "+1",
    "-0",
    "-0.0",
    "1.",
    ".5",
    ".",
    "1e",
    "1E+05",
    "1e999",
    "-1e-999",
    "nan",
    "-NaN",
    "inf",
]
ODD += [
    "0x10",
    "1_0",
    "1f",
    "null",
    "NA",
    "true",
    "#",
    "'1'",
    '"1"',
    '""',
    "1,0",
    "٣",
    "\xa01",
    "\0",
    "1\v",
    "1\r",
    "007",
]
ODD += [str(2**53), str(2**53 + 1), "9" * 400, "0" * 500 + "1", "0.1" + "0" * 300, "4.35", "1.7976931348623157e308"]
CELL = st.sampled_from(ODD) | st.integers(-(2**54), 2**54).map(str) | st.floats().map(repr)
PLAIN = st.integers(-999, 999).filter(bool).map(str) | st.floats(-1e9, 1e9).filter(bool).map(repr) | st.just("")
HEADERS = [
    b"a,\xc3\xbc b",
    b"\xc3\xbc b,a",
    b"\xef\xbb\xbfa,\xc3\xbc b",
    b"a",
    b"a,a",
    b"a, \xc3\xbc b",
    b'"a",\xc3\xbc b',
    b"",
]


def by_arrow(body):
    return csv_numbers(body, NAMES, max_rows=MOST)


def by_cell(body):
    try:
        read = read_rows(csv_document(body, INPUTS, max_rows=MOST, reading={}), INPUTS, max_rows=MOST)
    except ValiantError:
        return None
    return None if read.ignored else PREPARATION.raw(read.table)


@given(
    st.sampled_from(HEADERS),
    st.lists(st.lists(CELL, min_size=1, max_size=3) | st.lists(CELL, min_size=2, max_size=2), max_size=7),
    st.sampled_from(["\n", "\r\n", "\r", "\n\n", "\n\r\n", "\n \n"]),
    st.booleans(),
)
@example(HEADERS[0], [["-0", "1"]], "\n", False)
@example(HEADERS[0], [[str(2**53 + 1), "1"]], "\n", False)
def test_what_arrow_reads_is_what_the_cells_say(header, rows, end, ended):
    lines = [header, *(",".join(row).encode() for row in rows)]
    body = end.encode().join(lines) + end.encode() * ended
    read = by_arrow(body)
    if read is not None:
        assert read.tobytes() == by_cell(body).tobytes()


@given(
    st.lists(st.tuples(PLAIN, PLAIN), min_size=1, max_size=MOST),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(HEADERS[:3]),
    st.booleans(),
)
def test_plain_numbers_are_read_by_arrow(rows, end, header, ended):
    body = header + "".join(f"{end}{a},{b}" for a, b in rows).encode() + end.encode() * ended
    read = by_arrow(body)
    assert read.tobytes() == by_cell(body).tobytes()
    result = [[float(cell or math.nan) for cell in row] for row in rows]
    np.testing.assert_array_equal(read if header != HEADERS[1] else read[:, ::-1], result)


@pytest.mark.parametrize(
    "body",
    [b"", b"a", b"\n", b"a,\xff\n1,2\n", b"a,\xc3\xbc b\n", b"a,\xc3\xbc b\n" + b"1,2\n" * (MOST + 1), b"\n1,2\n" * 3],
)
def test_what_is_no_table_of_few_rows_is_left_to_the_other(body):
    assert by_arrow(body) is None


def test_a_model_of_other_inputs_is_left_to_the_other():
    assert csv_numbers(b"a,b\n1,2\n", None, max_rows=MOST) is None


NOTED = (
    InputColumn(name="price", kind="numeric", notation=Notation(decimal=",", thousands=".", unit="€")),
    InputColumn(name="rate", kind="numeric", notation=Notation(percent=True, missing=("n.b.",))),
    InputColumn(name="when", kind="datetime", notation=Notation(dates="DMY")),
    InputColumn(name="plan", kind="categorical", levels=["café"]),
    InputColumn(name="store", kind="categorical", levels=["5"], source_kind="numeric"),
    InputColumn(name="area", kind="numeric", source_kind="text"),
)
WANTED = [[1234.5, 0.125, "2024-03-31T00:00:00+00:00", "café", 5, 80], [None, None, None, None, None, None]]


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_cells_are_read_in_the_notation_of_the_training_data(delimiter, encoding):
    lines = [
        ["", "price", "rate", "when", "plan", "store", "area"],
        ["0", "1.234,50", "12.5 %", "31.03.2024", "café", "5.0", "80"],
        ["1", "?", "n.b.", "NA", "", "-999", "unknown"],
    ]
    body = "\n".join(map(delimiter.join, lines)).encode(encoding)
    reading = {"missing": ["-999"]} | ({} if encoding == "utf-8" else {"encoding": encoding})
    read = csv_document(body, NOTED, max_rows=MOST, reading=reading)
    assert read["columns"] == ["column_1", "price", "rate", "when", "plan", "store", "area"]
    assert [row[1:] for row in read["data"]] == WANTED
    named = csv_document(body, NOTED, max_rows=MOST, encoding=encoding, reading={"missing": ["-999"]})
    assert named == read


def test_words_that_do_not_fit_the_notation_are_faults_and_numbers_of_another_are_missing():
    body = b"price;rate;when;plan;store;area\nabc;0.5;2024-13-01;x;5;1\n"
    read = read_rows(csv_document(body, NOTED, max_rows=MOST, reading={}), NOTED, max_rows=MOST, let_bad_rows_pass=True)
    assert [fault.pointer for fault in read.faults] == ["/data/0/0"]
    with pytest.raises(InvalidData) as refusal:
        read_rows(csv_document(body, NOTED, max_rows=MOST, reading={}), NOTED, max_rows=MOST)
    assert [fault.pointer for fault in refusal.value.faults] == ["/data/0/0"]


def test_other_encodings_than_that_of_the_training_data_are_refused():
    with pytest.raises(InvalidEncoding):
        csv_document("plan\ncafé\n".encode("latin-1"), NOTED, max_rows=MOST, reading={})


NUMBERS = tuple(InputColumn(name=name, kind="numeric", nullable=True) for name in ("a", "b"))


def document(body, inputs=NUMBERS, **reading):
    return csv_document(body, inputs, max_rows=MOST, reading=reading)


@pytest.mark.parametrize(
    "body",
    [
        b'"a","b"\n1,2\n3,4\n',
        b'"a";"b"\n1;2\n3;4\n',
        b'"b", "a"\n2, 1\n4, 3\n',
        b"a b\n1 2\n3  4\n",
        b"Title\n\na,b\n1,2\n3,4\n",
        b"sep=;\na;b\n1;2\n3;4\n",
        b"a,b,\n1,2,\n3,4,\n",
    ],
)
def test_bodies_in_other_dialects_are_the_same_rows(body):
    read = read_rows(document(body), NUMBERS, max_rows=MOST)
    assert [column.to_pylist() for column in read.table.columns] == [[1, 3], [2, 4]]


def test_a_model_of_a_file_without_names_takes_such_rows():
    inputs = tuple(InputColumn(name=f"column_{number}", kind="numeric") for number in (1, 2))
    whole = document(b"1.5,2,9\n3.5,4,9\n", inputs, header=False, columns=3)
    assert (whole["columns"], whole["data"][0][:2]) == (["column_1", "column_2", "column_3"], [1.5, 2])
    assert document(b"1.5,2\n", inputs, header=False, columns=3) == {
        "columns": ["column_1", "column_2"],
        "data": [[1.5, 2]],
    }
    named = document(b"column_1,column_2\n1,2\n", inputs, header=False, columns=3)
    assert named["data"] == [[1, 2]]


def test_a_blank_line_is_a_row_of_a_body_of_one_column():
    inputs = NUMBERS[:1]
    assert document(b"a\n1\n\n3\n", inputs)["data"] == [[1], [None], [3]]


def test_strays_among_numbers_are_missing_as_in_an_upload():
    assert document(b"a,b\ninf,8?\n1,2\n")["data"] == [[None, None], [1, 2]]
    assert document(b"a,b\ninf,8?\n")["data"] == [[None, None]]
    assert document(b"a,b\nx,y\n1,z\n")["data"] == [[None, "y"], [1, "z"]]
