"""Quotes within cells that are not doubled, letters behind a closing quote, and other dialects that few files have."""

import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.base.errors import InvalidData
from app.formats.csv import csv_document
from app.ingest.csv_quote_check import QuoteCheck
from app.ml.contract.columns import InputColumn
from app.ml.tables.stray_quotes import Requoted

PET = 'Pedro "the" legend'


def words(table, name):
    return table.column(name).to_pylist()


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (['"Pedro "the" legend"', '"x"', '"say ""yes"""'], [PET, "x", 'say "yes"']),
        (['"Pedro ""the"" legend"', '"the "x", y"', '"z"'], [PET, 'the "x", y', "z"]),
        (['"oak"', '"oak"bla', '"ash"'], ["oak", '"oak"bla', "ash"]),
        (["oak", '"oak"bla', "ash"], ["oak", '"oak"bla', "ash"]),
        (['"', '"!"', '"fly"_away'], ['"', '"!"', '"fly"_away']),
        (['"two\nlines"', '"in"between"', '"x"'], ["two\nlines", 'in"between', "x"]),
    ],
)
def test_stray_quotes_are_letters_with_a_warning(parse, cells, expected):
    body = "n;word\n" + "".join(f"{number};{cell}\n" for number, cell in enumerate(cells))
    parsed, table = parse(body.encode())
    assert words(table, "word") == expected
    assert words(table, "n") == [0, 1, 2]
    assert "were read as letters" in parsed.warnings[0]


def test_a_warning_names_the_line_of_the_first_stray_quote(parse):
    parsed, _ = parse(b'n,word\n1,"two\nlines"\n2,"x"\n3,"in"between"\n4,"of"it"\n')
    assert parsed.warnings[0].startswith("Line 5 has quotes within a cell")


def test_rows_of_texts_that_begin_with_quotes_are_all_there(parse):
    texts = ["!", '"', '"."', '""', '"""', '"So" it began', *("plain" for _ in range(9))]
    parsed, table = parse(("n\ttitle\n" + "".join(f"{n}\t{text}\n" for n, text in enumerate(texts))).encode())
    assert words(table, "title") == texts
    assert parsed.warnings == ["Line 3 has quotes that do not enclose a cell: all quotes were read as letters."]


def test_inches_are_no_stray_quotes(parse):
    parsed, table = parse(b'n,size,word\n1,5" pipe,"a"\n2,6" x 4",b\n3,7" rod,"c, d"\n')
    assert words(table, "size") == ['5" pipe', '6" x 4"', '7" rod']
    assert words(table, "word") == ["a", "b", "c, d"]
    assert not [warning for warning in parsed.warnings if "quote" in warning]


def test_a_cut_file_is_refused_though_it_has_stray_quotes(parse):
    with pytest.raises(InvalidData) as refusal:
        parse(b'n,word\n1,"in"between"\n2,"x"\n3,"and so')
    assert refusal.value.faults[0].pointer == "/line/4/column/word"


def test_rows_that_no_reading_makes_equally_long_are_refused_with_the_line(parse):
    with pytest.raises(InvalidData) as refusal:
        parse(b'a,b\n"oak",1\n"o\n"oak,2\n"ash",3\n')
    assert [fault.pointer for fault in refusal.value.faults] == ["/line/3/column/b"]


def test_a_model_of_a_file_whose_quotes_are_letters_has_them_in_its_categories(parse):
    parsed, table = parse(b"n,word\n1,ash\n2,oak\n" + b'3,"oak"bla\n' + b'4,"!"\n')
    assert words(table, "word")[3] == '"!"'
    inputs = [InputColumn(name="word", kind="categorical", levels=('"!"', "ash"))]
    document = csv_document(b'word\n"!"\n', inputs, max_rows=9, reading=parsed.reading.model_dump())
    assert document["data"] == [['"!"']]


def test_a_body_of_a_prediction_is_read_as_the_upload(parse):
    body = 'n;word\n1;"Pedro "the" legend"\n2;"oak"bla\n3;"x"\n'
    inputs = [InputColumn(name="n", kind="numeric"), InputColumn(name="word", kind="categorical", levels=("x",))]
    document = csv_document(body.encode(), inputs, max_rows=9, reading={})
    assert [row[1] for row in document["data"]] == words(parse(body.encode())[1], "word") == [PET, '"oak"bla', "x"]


@pytest.mark.parametrize(
    ("data", "expected", "word"),
    [
        (b"n,w\n1,\\,\n2,a\\\nb\n3,c\n", [",", "a\nb", "c"], "backslash"),
        (b'n,w\n1,"a\\"b"\n2,c\n', ['a"b', "c"], "backslash"),
        (b"n w\n1 a\n2 b\n3 c\n", ["a", "b", "c"], "blanks"),
        (b"n,w\n1,'a, b'\n2,'c'\n", ["a, b", "c"], "Apostrophes"),
        (b'n, w\n1, "a, b"\n2, c\n', ["a, b", "c"], "in front of quotes"),
    ],
)
def test_a_dialect_that_few_files_have_is_warned_about(parse, data, expected, word):
    parsed, table = parse(data)
    assert words(table, "w") == expected
    assert word in parsed.warnings[0]


def test_a_backslash_in_front_of_a_doubled_quote_is_a_letter(parse):
    table = parse(b'n,w\n1,"James \\""Logan\\"" H"\n2,x\n')[1]
    assert words(table, "w") == ['James \\"Logan\\" H', "x"]


@given(st.lists(st.lists(st.text('ab ",\n', max_size=6), min_size=2, max_size=3), min_size=1, max_size=5))
def test_lines_without_stray_quotes_stay_as_they_are(rows):
    lines = [",".join('"' + cell.replace('"', '""') + '"' for cell in row) + "\n" for row in rows]
    physical = [line for row in lines for line in row.splitlines(keepends=True)]
    requoted = Requoted(iter(physical), ",")
    assert list(requoted) == physical
    assert not requoted.counts.stray
    check = QuoteCheck(",")
    check.add("".join(lines).encode())
    assert not check.stray


@given(st.text('a ",;\n', max_size=60), st.integers(1, 20))
def test_blocks_of_any_size_show_every_stray_quote(text, size):
    requoted = Requoted(iter(text.splitlines(keepends=True)), ",")
    rewritten = list(requoted)
    assert len(rewritten) == text.count("\n") + (not text.endswith("\n") and bool(text))
    checks = [QuoteCheck(","), QuoteCheck(",")]
    checks[0].add(text.encode())
    for start in range(0, len(text), size):
        checks[1].add(text[start : start + size].encode())
    assert checks[0].stray == checks[1].stray
    assert checks[0].stray or not is_stray(text)


def is_stray(text):
    try:
        list(csv.reader(text.splitlines(keepends=True), strict=True))
    except csv.Error as error:
        return "unexpected end" not in str(error)
    return False


@pytest.mark.parametrize(
    "data", [b'n w\n1 a\n2 "b\n3 c\n', b'n, w\n1, "a"\n2, "b\n3, c', b"n,w\n1,'a'\n2,'b'\n3,\"c\n"]
)
def test_a_lone_quote_is_a_letter_in_every_dialect(parse, data):
    assert parse(data)[0].rows == 3


@pytest.mark.parametrize("data", [b'n, w\n1, "a"\n2, "b"\n3, "c', b'n,w\n1,"a"\n2,"b"\n3,"c'])
def test_a_cut_file_of_quoted_cells_is_refused(parse, data):
    with pytest.raises(InvalidData) as refusal:
        parse(data)
    assert refusal.value.faults[0].pointer == "/line/4/column/w"
