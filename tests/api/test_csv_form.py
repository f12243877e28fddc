"""Numbers that come as CSV: Arrow's reader and the general one give the same bits, or only the general one answers."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.api.csv_form import csv_document, csv_numbers
from app.errors import ValiantError
from app.ml.learning import Learned
from app.ml.preparation import Preparation
from app.ml.rows import read_rows
from app.ml.schema import InputColumn

MOST = 5
NAMES = ("a", "ü b")
NEUTRAL = np.ones(2)
INPUTS = tuple(InputColumn(name=name, kind="numeric", nullable=True) for name in NAMES)
PREPARATION = Preparation(INPUTS, Learned(NEUTRAL, NEUTRAL, NEUTRAL, NEUTRAL > 1, NEUTRAL > 1))
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
        read = read_rows(csv_document(body, INPUTS, max_rows=MOST), INPUTS, max_rows=MOST)
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
    told = [[float(cell or math.nan) for cell in row] for row in rows]
    np.testing.assert_array_equal(read if header != HEADERS[1] else read[:, ::-1], told)


@pytest.mark.parametrize(
    "body",
    [b"", b"a", b"\n", b"a,\xff\n1,2\n", b"a,\xc3\xbc b\n", b"a,\xc3\xbc b\n" + b"1,2\n" * (MOST + 1), b"\n1,2\n" * 3],
)
def test_what_is_no_table_of_few_rows_is_left_to_the_other(body):
    assert by_arrow(body) is None


def test_a_model_of_other_inputs_is_left_to_the_other():
    assert csv_numbers(b"a,b\n1,2\n", None, max_rows=MOST) is None
