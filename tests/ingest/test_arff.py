"""ARFF files, dense and sparse: the declared kinds hold, and every fault names its line."""

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.base.errors import InvalidData

ROOT = Path(__file__).parents[2]
HEADER = b"""% made by a program
@RELATION 'weather data'

@attribute outlook {sunny, overcast, 'very rainy'}
@attribute temperature real
@ATTRIBUTE "humid ity" integer
\t@attribute windy {TRUE, FALSE}
@attribute when date "dd.MM.yyyy"
@attribute note string
@data
"""
KINDS = ["categorical", "numeric", "numeric", "categorical", "datetime", "text"]


def test_columns_have_the_kinds_that_the_header_declares(parse):
    rows = b"""sunny, 85.5, 85, FALSE, 03.02.2024, plain
% a comment, of two parts
overcast,?,86,TRUE,04.02.2024,"a, b"
'very rainy',70,96,?,?,'it\\'s\\n 5 %' % a comment, behind

sunny,70.25,96,TRUE,05.02.2024,don't
"""
    parsed, table = parse(HEADER + rows)
    assert parsed.reading.file_format == "arff"
    assert [column.kind for column in parsed.columns] == KINDS
    assert table.to_pydict() == {
        "outlook": ["sunny", "overcast", "very rainy", "sunny"],
        "temperature": [85.5, None, 70.0, 70.25],
        "humid ity": [85, 86, 96, 96],
        "windy": ["FALSE", "TRUE", None, "TRUE"],
        "when": [*(datetime(2024, 2, day, tzinfo=UTC) for day in (3, 4)), None, datetime(2024, 2, 5, tzinfo=UTC)],
        "note": ["plain", "a, b", "it's\n 5 %", "don't"],
    }


TWO = b"@relation r\n@attribute x numeric\n@attribute c {a,'b c'}\n@data\n"


@pytest.mark.parametrize(
    "rows",
    [
        b"1,a\n0,a\n2.5,'b c'\n",
        b'1,a\r\n0 , a\r\n 2.5,"b c"',
        b"1 a\n0\ta\n2.5 'b c'\n",
        b"{0 1, 1 a}\n{}\n{1 'b c', 0 2.5}\n",
        b'{0 1,1 a} % first\n { 1 a }\n{0 2.5,1 "b c"}\n',
    ],
)
def test_dense_and_sparse_rows_are_the_same_table(parse, rows):
    assert parse(TWO + rows)[1].to_pydict() == {"x": [1.0, 0.0, 2.5], "c": ["a", "a", "b c"]}


@pytest.mark.parametrize("rows", [b"1,a\n?,?\n,\n", b"1, a\n ? , ?\n?,\n", b"{0 1}\n{0 ?, 1 ?}\n{0 ?, 1 ?}\n"])
def test_the_mark_of_missing_values_is_missing(parse, rows):
    assert parse(TWO + rows)[1].to_pydict() == {"x": [1, None, None], "c": ["a", None, None]}


def test_weights_of_rows_are_a_column(parse):
    table = parse(TWO + b"1,a\n2,a,{2.5}\n{0 3},{0.5}\n")[1]
    assert table.to_pydict() == {"x": [1, 2, 3], "c": ["a"] * 3, "weight": [1.0, 2.5, 0.5]}


def test_a_single_attribute_has_no_rows_in_blank_lines(parse):
    assert parse(b"@relation r\n@attribute x numeric\n@data\n\n1\n\n2\n%\n")[1].to_pydict() == {"x": [1, 2]}


def test_levels_are_compared_with_those_declared(parse):
    parsed, table = parse(b"@relation r\n@attribute c {a,b,d}\n@attribute x real\n@data\na,1\ne,2\na,3\n")
    assert table.column("c").to_pylist() == ["a", "e", "a"]
    assert parsed.columns[0].warnings == [
        "1 value was not among those that the header of the file declares, and kept.",
        "2 of the 3 values that the header of the file declares do not occur.",
    ]


def test_kinds_of_the_upload_go_before_those_of_the_header(parse):
    parsed, table = parse(TWO + b"1,a\n2,a\n", options={"kinds": {"x": "text"}})
    assert table.column("x").to_pylist() == ["1", "2"]
    assert parsed.columns[0].kind == "text"


def test_a_file_of_another_encoding_and_of_keel_is_read(parse):
    data = "@relation r\n@attribute größe real [0.0, 9.5]\n@inputs größe\n@data\n1.5\n2\n".encode("latin-1")
    assert parse(data, options={"encoding": "windows-1252"})[1].to_pydict() == {"größe": [1.5, 2.0]}


def test_a_file_is_recognised_by_its_name(faults):
    assert faults(b"1,2\n", name="table.arff.gz") == {"/line/1": "arff_header"}


@pytest.mark.parametrize(
    ("data", "place", "code"),
    [
        (b"@relation r\n@attribute x numeric\n", "/line/2", "arff_header"),
        (b"@relation r\n@attribute x\n@data\n1\n", "/line/2", "arff_header"),
        (b"@relation r\n@attribute x SECRET\n@data\n1\n", "/line/2", "arff_header"),
        (b"@relation r\n@attribute\n@data\n1\n", "/line/2", "arff_header"),
        (b"@relation r\n@attribute x {a,'SECRET\n@data\n1\n", "/line/2", "arff_header"),
        (b"@relation r\n@attribute bag relational\n@attribute x real\n@end bag\n@data\n", "/line/2", "arff_header"),
        (b"@relation r\n@attribute x\xff real\n@data\n1\n", "/line/2", "not_utf8"),
        (b"@relation r\n@attribute x real\nSECRET\n@data\n1\n", "/line/3", "arff_header"),
        (b"@relation r\n@attribute x real\n@attribute x real\n@data\n1,2\n", "/column/x", "duplicate_column"),
        (TWO, "/line/4", "no_rows"),
        (TWO + b"% 1,a\n\n", "/line/4", "no_rows"),
        (TWO + b"1,a\n2,a,SECRET\n", "/line/6", "ragged_row"),
        (TWO + b"% c\n1,a\n2,'SECRET\n", "/line/7", "unreadable_row"),
        (TWO + b"{0 1}\n{0 1, 2 SECRET}\n", "/line/6", "sparse_row"),
        (TWO + b"{0 1}\n{SECRET}\n", "/line/6", "unreadable_row"),
        (TWO + b"SECRET,a\nSECRET,a\n", "/kinds/x", "kind_not_found"),
    ],
)
def test_faults_name_their_line(faults, data, place, code):
    assert faults(data) == {place: code}


def test_a_relational_attribute_is_refused_with_a_remedy(parse):
    with pytest.raises(InvalidData) as refused:
        parse(b"@relation r\n@attribute bag relational\n@end bag\n@data\n")
    assert "attributes of their own" in refused.value.faults[0].detail


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=8)
TEXTS = TEXTS.filter(lambda text: text == text.strip() and text != "?")


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(-99, 99), TEXTS, st.sampled_from("'\"")), min_size=1, max_size=9), st.booleans())
def test_whatever_is_in_quotes_is_the_value(parse, rows, sparse):
    def quoted(text, quote):
        return quote + text.replace("\\", "\\\\").replace(quote, f"\\{quote}") + quote

    lines = [
        f"{{0 {number}, 1 {quoted(text, quote)}}}" if sparse else f"{number},{quoted(text, quote)}"
        for number, text, quote in rows
    ]
    data = "@relation r\n@attribute n integer\n@attribute t string\n@data\n" + "\n".join(lines)
    table = parse(data.encode())[1]
    assert table.column("n").to_pylist() == [number for number, _, _ in rows]
    assert table.column("t").to_pylist() == [text for _, text, _ in rows]


def test_a_plain_file_and_one_in_quotes_are_read_alike(parse):
    rows = [f"{number / 7:.4f},{'ab'[number % 2]}\n" for number in range(3000)]
    plain = parse(TWO + "".join(rows).replace("b", "a").encode())[1]
    quoted = parse(TWO + "".join(rows).replace("b", "'b c'").encode())[1]
    assert plain.column("x").equals(quoted.column("x"))
    assert pc.value_counts(quoted.column("c")).to_pylist() == [
        {"values": "a", "counts": 1500},
        {"values": "b c", "counts": 1500},
    ]
    assert plain.schema == pa.schema([("x", pa.float64()), ("c", pa.string())])


SMALL = b"@relation r\n@attribute a numeric\n@attribute b string\n@data\n"


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (SMALL + b"{" + b"9" * 5000 + b" 1}\n", 5),
        (SMALL + b"1,'\\ud83d'\n", 5),
        (SMALL.replace(b"numeric", b"{'\\ude00',c}") + b"c,x\n", 2),
        (SMALL.replace(b" a ", b" '\\ud83d' ") + b"1,x\n", 2),
    ],
)
def test_numbers_of_any_length_and_halves_of_characters_are_refused(parse, data, line):
    with pytest.raises(InvalidData) as refused:
        parse(data)
    assert refused.value.faults[0].pointer == f"/line/{line}"


def test_both_halves_are_a_character(parse):
    _, table = parse(SMALL + b"1,'\\ud83d\\ude00 \\u00e9'\n")
    assert table.column("b").to_pylist() == ["\U0001f600 é"]


def test_long_lines_are_read_in_one_pass():
    """In a child with a time limit: were blanks tried again from each of them, it would take 10¹¹ steps."""
    program = """
from app.base.errors import InvalidData
from app.ingest import arff, arff_header
blanks, levels = " " * 1_000_000, ",".join(map(str, range(400_000)))
texts = ["{" + blanks, "," + blanks + "'a", ",{" + blanks, "1" + blanks + "'a", "'" + blanks, blanks + "%" + blanks]
for text in texts:
    arff._WEIGHT.search(text), arff._WEIGHTED.search(text.encode())
    for pattern in (arff._CELL, arff._PAIR, arff._BLANK_SEPARATED, arff._BEFORE_COMMENT):
        pattern.match(text)
assert len(arff_header._levels("{" + levels + "}", 1)) == 400_000
"""
    subprocess.run([sys.executable, "-P", "-c", program], check=True, timeout=60, cwd=ROOT)
