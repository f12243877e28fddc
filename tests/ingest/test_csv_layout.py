"""Columns of a CSV file: its header, or none; an index, and columns without a name; and its encoding."""

import pytest

from app.base.errors import InvalidData
from app.ingest import csv_header
from app.ingest.cell_patterns import cell_kind

IRIS = b"5.1,3.5\n4.9,3.0\n"


def test_a_first_row_of_numbers_holds_values(parse):
    parsed, table = parse(IRIS)
    assert table.to_pydict() == {"column_1": [5.1, 4.9], "column_2": [3.5, 3.0]}
    assert "header=present" in parsed.warnings[0]
    assert parsed.reading.header is False


@pytest.mark.parametrize("first", [b"1,NA,-3e5", b" 1 ,,+.5", b"0,0,0"])
def test_missing_cells_are_no_names(parse, first):
    assert parse(first + b"\n1,2,3\n")[0].rows == 2


def test_a_number_that_comes_twice_is_no_name(parse):
    parsed, _ = parse(b"0,1,0,yes\n1,1,0,no\n")
    assert (parsed.rows, parsed.reading.header) == (2, False)


def test_extra_markers_and_decimal_commas_count_in_the_first_row(parse):
    parsed, table = parse(b"1,5;n.b.;2\n2,5;3;1\n", options={"missing": ["n.b."]})
    assert table.column_names == ["column_1", "column_2", "column_3"]
    assert parsed.reading.missing == ["n.b."]


@pytest.mark.parametrize(("first", "doubted"), [(b"a,3.5", False), (b"a,1,2", True), (b"0,1,2", True), (b"a,b", False)])
def test_names_that_are_numbers_raise_a_doubt(parse, first, doubted):
    parsed, _ = parse(first + b"\n" + first.replace(b"a", b"5") + b"\n")
    assert parsed.rows == 1
    assert ["header=absent" in warning for warning in parsed.warnings] == [True] * doubted


def test_the_header_can_be_given(parse):
    parsed, table = parse(IRIS, options={"header": "present"})
    assert (table.column_names, parsed.rows, parsed.warnings) == (["5.1", "3.5"], 1, [])
    parsed, table = parse(b"\xef\xbb\xbfa,b\n1,x\n", options={"header": "absent"})
    assert table.to_pydict() == {"column_1": ["a", "1"], "column_2": ["b", "x"]}
    assert not parsed.warnings


def test_faults_of_a_file_without_a_header_have_their_line(faults):
    assert faults(b"1,2\n3\n") == {"/line/2/column/column_2": "ragged_row"}
    assert faults(b"1,2\n3,\xff\n") == {"/line/2/column/column_2": "not_utf8"}
    assert faults(b'x,"\n1,2\n3\n', options={"header": "absent"}) == {"/line/1/column/column_2": "unclosed_quote"}


@pytest.mark.parametrize("start", [0, 1])
def test_an_index_without_a_name_is_one(parse, start):
    """As pandas and R write it."""
    rows = b"".join(b"%d,%d,x\n" % (start + at, at * at % 7) for at in range(9))
    parsed, table = parse(b",a,index\n" + rows)
    assert table.column_names == ["index_2", "a", "index"]
    assert parsed.columns[0].identifier_like
    assert "'index_2'" in parsed.warnings[0]
    parsed, table = parse(b'"","a"\n"%d",3\n"%d",4\n' % (start, start + 1))
    assert table.column_names == ["index", "a"]


def test_columns_without_a_name_have_their_number(parse):
    parsed, table = parse(b",a,,column_3\nx,1,2,3\ny,3,4,5\n")
    assert table.column_names == ["column_1", "a", "column_3_2", "column_3"]
    assert table.column("column_3_2").to_pylist() == [2, 4]
    assert len(parsed.warnings) == 2


def test_columns_without_name_and_values_are_left_out(parse):
    parsed, table = parse(b"a,,b,\n1,,2,\n3,NA,4,\n")
    assert table.to_pydict() == {"a": [1, 3], "b": [2, 4]}
    (warning,) = parsed.warnings
    assert "left out: 2, 4 of 4" in warning
    late = b"a,\n" + b"1,\n" * 2_000_000 + b"1,x\n"
    assert parse(late)[1].column_names == ["a", "column_2"]


TEXT = "größe,preis in €\n1,ü\n2,ß\n"


@pytest.mark.parametrize("encoding", ["windows-1252", "iso8859-15", "utf-16-le", "utf-8", "gb18030"])
def test_an_encoding_can_be_given(parse, encoding):
    parsed, table = parse(TEXT.encode(encoding), options={"encoding": encoding})
    assert parsed.reading.encoding == encoding
    assert table.to_pydict() == {"größe": [1, 2], "preis in €": ["ü", "ß"]}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_a_byte_order_mark_names_the_encoding(parse, encoding):
    parsed, table = parse(TEXT.encode(encoding))
    assert parsed.reading.encoding == encoding
    assert table.column_names == ["größe", "preis in €"]


@pytest.mark.parametrize(
    ("text", "where"), [("größe,b\n1,ü\n2,x\n", "/line/1/column/1"), ("a,b\n1,2\n3,ü\n", "/line/3/column/b")]
)
def test_latin_1_is_refused_with_advice_that_works(parse, text, where):
    with pytest.raises(InvalidData) as refused:
        parse(text.encode("latin-1"))
    fault = refused.value.faults[0]
    assert (fault.pointer, fault.code) == (where, "not_utf8")
    assert "UTF-8" in fault.detail
    assert "encoding=windows-1252" in fault.detail
    assert parse(text.encode("latin-1"), options={"encoding": "windows-1252"})[0].rows == 2


def test_bytes_that_are_not_in_the_encoding_are_named_by_their_line(faults):
    data = b"a\n" + b"x\n" * 100_000 + b"\x81\n"
    assert faults(data, options={"encoding": "windows-1252"}) == {"/line/100002": "not_in_encoding"}
    assert faults("a\n1\n2".encode("utf-16")[:-1]) == {"/line/3": "not_in_encoding"}


@pytest.mark.parametrize("lines", [1, 2])
@pytest.mark.parametrize("cell", ["0", "ab", "2024-01-01", '"a"', ""])
def test_a_line_of_more_cells_than_a_table_may_have_is_not_looked_at_in_every_cell(faults, monkeypatch, cell, lines):
    """Ten times the cells cost no more looks for a header."""
    looks = []
    for width in (30_000, 300_000):
        count = 0

        def counted(value):
            nonlocal count
            count += 1
            return cell_kind(value)

        monkeypatch.setattr(csv_header, "cell_kind", counted)
        faults(lines * (",".join([cell] * width) + "\n").encode())
        looks.append(count)
    assert looks[1] <= looks[0] < 500_000
