import csv
import gzip
import io
import tempfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.base.errors import BodyTooLarge, InvalidData
from app.ingest import csv_reader as delimited
from app.ingest.upload_options import ReadOptions
from app.ingest.uploaded_file import Limits, Source

FILLER = b"".join(b"%d,filler,%d\n" % (i, i) for i in range(2, 5000))


def test_the_kinds_of_columns(parse):
    data = (
        "número,plan,aktiv,wann,Größe,leer\n"
        '1,"pro, ""gold""",true,2024-01-31,1.5,\n'
        'NA,basic,False,2024-02-01T10:00:00,"2",n/a\n'
        '3,"zwei\nZeilen",TRUE,?,-1e3,\n'
    )
    parsed, table = parse(data.encode())
    assert [c.kind for c in parsed.columns] == [
        "numeric",
        "categorical",
        "boolean",
        "datetime",
        "numeric",
        "categorical",
    ]
    assert table.column("número").to_pylist() == [1, None, 3]
    assert table.column("plan").to_pylist() == ['pro, "gold"', "basic", "zwei\nZeilen"]
    assert table.column("aktiv").to_pylist() == [True, False, True]
    assert [None if t is None else t.isoformat() for t in table.column("wann").to_pylist()] == [
        "2024-01-31T00:00:00+00:00",
        "2024-02-01T10:00:00+00:00",
        None,
    ]
    assert table.column("Größe").to_pylist() == [1.5, 2.0, -1000.0]
    assert table.column("leer").to_pylist() == [None, "n/a", None]  # no number or date stands beside it


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_delimiters_line_ends_and_byte_order_marks(parse, end, delimiter, mark):
    rows = [["a", "b"], ["1", "x y"], ["2", '"q\nz"'], ["3", "w"]]
    _, table = parse((mark + end.join(delimiter.join(row) for row in rows)).encode())
    assert table.to_pydict() == {"a": [1, 2, 3], "b": ["x y", "q\nz", "w"]}


def test_semicolons_with_decimal_commas(parse):
    _, table = parse(b"a;b\n1,5;2\n2;3,25\n")
    assert table.to_pydict() == {"a": [1.5, 2.0], "b": [2.0, 3.25]}


def test_one_column_and_blank_lines(parse):
    _, table = parse(b"\n\nage\n31\n\n44\n")
    assert table.to_pydict() == {"age": [31, None, 44]}


def test_a_type_that_shows_late_holds_for_the_whole_file(parse):
    """Arrow alone would take the type of the first block and fail on a later one."""
    rows = b"7,1,2024-01-01\n" * 600_000
    assert len(rows) > 2 * delimited.BLOCK
    parsed, table = parse(b"a,b,c\n" + rows + b"x,1.5,later\n" * 7000)
    assert [c.kind for c in parsed.columns] == ["categorical", "numeric", "categorical"]
    assert table.column("a")[0].as_py() == "7"
    assert table.column("b")[-1].as_py() == 1.5
    assert len(parsed.chunks) > 1
    assert [c.first_row for c in parsed.chunks] == [0, *np.cumsum([c.rows for c in parsed.chunks])[:-1]]


def test_whole_numbers_beyond_64_bits_stay_as_they_are_written(parse):
    _, table = parse(b"a,b\n9223372036854775807,9223372036854775808\n1,2\n")
    assert table.column("a").to_pylist() == [2**63 - 1, 1]
    assert table.column("b").to_pylist() == ["9223372036854775808", "2"]


def test_infinite_values_are_missing_and_reported_so(parse):
    parsed, table = parse(b"a\ninf\n1\n1e999\n-Infinity\n")
    assert table.column("a").to_pylist() == [None, 1, None, None]
    assert parsed.columns[0].warnings[0] == "3 infinite values were read as missing."


# ruff: noqa: E501  a table reads best with a case a line
SEEDED = {
    "too few fields": (b"a,b,c\n1,2,3\n4,5\n", {"/line/3/column/c": "ragged_row"}),
    "too many fields": (b"a,b\n1,2\n3,4,SECRET\n", {"/line/3": "ragged_row"}),
    "behind quoted newlines": (b'a,b\n"x\n\ny",2\n3\n', {"/line/5/column/b": "ragged_row"}),
    "behind blank lines": (b"\n\na,b\n\n1,2\n\n3\n", {"/line/7/column/b": "ragged_row"}),
    "carriage returns": (b"a,b\r1,2\r3\r", {"/line/3/column/b": "ragged_row"}),
    "carriage returns and newlines": (b'a,b\r\n"1\r\n",2\r\n3\r\n', {"/line/4/column/b": "ragged_row"}),
    "not utf-8": (b"a,b\n1,x\n2,SECRET\xff\n", {"/line/3/column/b": "not_utf8"}),
    "latin-1": ("a,größe\n1,ü\n".encode("latin-1"), {"/line/1/column/2": "not_utf8"}),
    "a lone surrogate": (b"a,b\n\xed\xa0\x80,2\n", {"/line/2/column/a": "not_utf8"}),
    "not utf-8 in a field of several lines": (b'a,b,c\n1,"x\ny",\xff\n', {"/line/3/column/c": "not_utf8"}),
    "nul": (b"a,b\n1,2\nSECRET\0,4\n", {"/line/3/column/a": "nul_character"}),
    "an open quote": (b'a,b\n1,2\n3,"SECRET\n5,6\n7\n', {"/line/3/column/b": "unclosed_quote"}),
    "an open quote in the last field": (b'a,b,c\n1,2,3\n3,"', {"/line/3/column/b": "unclosed_quote"}),
    "an open quote in the header": (b'a,"SECRET\n1,2\n3\n', {"/line/1/column/2": "unclosed_quote"}),
    "a column twice": (b"a,b, a\n1,2,3\n", {"/line/1/column/a": "duplicate_column"}),
    "a name with a slash": (b"a/b~c,d\n1,\xff\n\xff,2\n", {"/line/2/column/d": "not_utf8", "/line/3/column/a~1b~0c": "not_utf8"}),
    "only a header": (b"a,b\n", {"/line/1": "no_rows"}),
    "only a header without an end": (b"a,b", {"/line/1": "no_rows"}),
    "only blank lines": (b"\n\n \n", {"": "no_rows"}),
    "utf-16 without a mark": ("a,b\n1,2\n".encode("utf-16-le"), {"/line/1": "not_utf8"}),
}  # fmt: skip


@pytest.mark.parametrize("case", SEEDED)
def test_a_seeded_fault_is_named_by_line_and_column(faults, case):
    data, expected = SEEDED[case]
    assert faults(data, file_format="csv") == expected


def test_a_fault_far_behind_the_first_block(faults):
    rows = b'1,"two\nlines",3\n' * 400_000
    assert len(rows) > delimited.BLOCK
    assert faults(b"a,b,c\n" + rows + b"4,5\n") == {"/line/800002/column/c": "ragged_row"}


def test_the_first_twenty_faults_are_listed(parse):
    with pytest.raises(InvalidData) as refused:
        parse(b"a,b\n" + b"1\n" * 50)
    assert [fault.pointer for fault in refused.value.faults] == [f"/line/{n}/column/b" for n in range(2, 22)]
    assert "stopped" in refused.value.detail


def test_a_row_without_end(faults):
    data = b"a,b\n1," + b"x" * (3 * delimited.BLOCK) + b"\n"
    assert faults(data) == {"/line/2": "too_long"}
    assert faults(b'a,b\n1,"' + b"x\n" * (2 * delimited.BLOCK)) == {"/line/2": "too_long"}


@pytest.mark.parametrize(("limits", "word"), [({"max_rows": 4998}, "rows"), ({"max_columns": 2}, "columns")])
def test_limits_on_rows_and_columns(parse, limits, word):
    data = b"a,b,c\n1,filler,1\n" + FILLER
    assert parse(data, max_rows=4999, max_columns=3)[0].rows == 4999
    with pytest.raises(InvalidData, match=word):
        parse(data, **limits)


def test_gzip_is_unpacked(parse):
    data = gzip.compress(b"a,b\n1,2\n") + gzip.compress(b"3,4\n")
    assert parse(data)[1].to_pydict() == {"a": [1, 3], "b": [2, 4]}


def test_gzip_that_is_damaged_or_a_bomb_is_refused(parse):
    whole = gzip.compress(b"a,b\n" + FILLER)
    with pytest.raises(InvalidData, match="gzip"):
        parse(whole[:-9])
    with pytest.raises(InvalidData, match="gzip"):
        parse(whole[:200] + b"\0\0\0\0" + whole[204:])
    bomb = gzip.compress(b"a,b\n" + b"1,2\n" * 2_500_000)
    assert len(bomb) < 30_000
    with pytest.raises(BodyTooLarge):
        parse(bomb, unpacked_bytes=1 << 20)


CELLS = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=8).map("t{}".format)


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=10))
@settings(max_examples=60, deadline=None)
def test_quoted_text_comes_back_but_for_blanks_around_it(rows):
    written = io.StringIO(newline="")
    csv.writer(written, quoting=csv.QUOTE_ALL).writerows([("a", "b"), *rows])
    with tempfile.TemporaryFile() as file:
        file.write(written.getvalue().encode())
        file.flush()
        reading = delimited.read(Source.of(file.fileno(), 1 << 20), Limits(100, 2, 1 << 20, 1 << 20), ReadOptions())
        found = [row for batch in reading.batches for row in zip(*(c.to_pylist() for c in batch), strict=True)]
    assert found == [tuple(cell.strip(" \t") for cell in row) for row in rows]
