import gzip
import json
import random

import pytest

from app.base.errors import InvalidData
from app.ingest import json_lines as jsonl

# ruff: noqa: E501  a table reads best with a case a line
SEEDED = {
    "not json": (b'{"a": 1}\n{"a": SECRET}\n', {"/line/2": "malformed_json"}),
    "not finite": (b'{"a": 1}\n{"a": NaN}\n', {"/line/2": "malformed_json"}),
    "a lone surrogate": (b'{"a": "\\ud800"}\n', {"/line/1": "malformed_json"}),
    "not utf-8": (b'{"a": "\xff"}\n', {"/line/1": "malformed_json"}),
    "not an object": (b'{"a": 1}\n\n[1]\n', {"/line/3": "not_an_object"}),
    "an array cut off": (b'[{"a": 1}, {"a": 2', {"/row/2": "malformed_json"}),
    "an array without an end": (b'[{"a": 1}, {"a": 2}', {"/row/2": "malformed_json"}),
    "text among the numbers of an array": (b'[{"a": 1},\n\n{"a": "SECRET"}]', {"/row/2/column/a": "mixed"}),
    "a key twice in an array": (b'[{"a": 1, "a": 2}]', {"/row/1/column/a": "duplicate_key"}),
    "nested in an array": (b'[{"a": [1]}]', {"/row/1/column/a": "nested"}),
    "a number in an array": (b'[{"a": 1}, 7]', {"/row/2": "not_an_object"}),
    "an array that is not utf-8": (b'[{"a": "\xff"}]', {"/row/1": "malformed_json"}),
    "an array nested far too deep": (b'[{"a":' * 90_000, {"/row/1": "malformed_json"}),
    "columns twice": (b'{"columns": ["a", "a"], "data": [[1, 2]]}', {"/columns": "bad_name"}),
    "columns that are no array": (b'{"columns": {"a": 1}, "data": [[1, 2]]}', {"/columns": "bad_name"}),
    "a row that is short": (b'{"columns": ["a", "b"], "data": [[1, 2], [3]]}', {"/row/2": "ragged_row"}),
    "data before its columns": (b'{"data": [[1]], "columns": ["a"]}', {"/line/1/column/data": "nested", "/line/1/column/columns": "nested"}),
    "text among numbers": (b'{"a": 1}\n{"a": null}\n{"a": "SECRET"}\n', {"/line/3/column/a": "mixed"}),
    "a boolean among numbers": (b'{"a": 1.5}\n{"a": true}\n', {"/line/2/column/a": "mixed"}),
    "nested": (b'{"a": [1], "b": {}}\n', {"/line/1/column/a": "nested", "/line/1/column/b": "nested"}),
    "a key twice": (b'{"a": 1, "b": "x:y", "a": 2}\n', {"/line/1/column/a": "duplicate_key"}),
    "nested very deep": (b'{"a":' * 900 + b"1" + b"}" * 900, {"/line/1/column/a": "nested"}),
    "nested far too deep": (b'{"a":' * 5000 + b"1" + b"}" * 5000, {"/line/1": "malformed_json"}),
    "nul": (b'{"a": "x"}\n{"a": "SECRET\\u0000"}\n', {"/row/2/column/a": "nul_character"}),
    "a column without a name": (b'{"": 1}\n', {"/column/1": "unnamed_column"}),
    "a nul in a name": (b'{"a\\u0000": 1}\n', {"/column/1": "bad_name"}),
    "a line without end": (b'{"a": 1}\n{"a": "' + b"x" * jsonl.LINE_BYTES + b'"}\n', {"/line/2": "too_long"}),
    "several": (b'{"a": 1}\n{"a": "x"}\n{\n{"a": []}\n', {"/line/2/column/a": "mixed", "/line/3": "malformed_json", "/line/4/column/a": "nested"}),
}  # fmt: skip


@pytest.mark.parametrize("case", SEEDED)
def test_a_seeded_fault_is_named_by_line_and_column(faults, case):
    data, expected = SEEDED[case]
    assert faults(data, file_format="jsonl") == expected


def test_the_kinds_of_columns(parse):
    parsed, table = parse(
        b'{"i": 1, "f": 1, "s": "1", "b": true, "t": "2024-01-31T10:00:00Z"}\n'
        b'{"i": 2, "f": 2.5, "s": "NA", "b": null, "t": null, "late": 18446744073709551616}\n\n'
        b'{"s": "", "i": -9223372036854775808}\n'
    )
    kinds = {c.name: c.kind for c in parsed.columns}
    assert kinds == {
        "i": "numeric", "f": "numeric", "s": "categorical", "b": "boolean", "t": "datetime", "late": "categorical"
    }  # fmt: skip
    assert table.column("i").to_pylist() == [1, 2, -(2**63)]
    assert table.column("f").to_pylist() == [1.0, 2.5, None]
    assert table.column("s").to_pylist() == ["1", "NA", None]
    assert table.column("b").to_pylist() == [True, None, None]
    assert table.column("late").to_pylist() == [None, str(2**64), None]


def test_a_kind_that_shows_late_and_strings_that_stop_being_times(parse):
    rows = b'{"n": 1, "t": "2024-01-31"}\n' * (2 * jsonl.BLOCK_ROWS)
    parsed, table = parse(rows + b'{"n": 0.5, "t": "soon"}\n')
    assert [c.kind for c in parsed.columns] == ["numeric", "categorical"]
    assert table.column("n")[-1].as_py() == 0.5
    assert table.column("t")[0].as_py() == "2024-01-31"


def test_packed_with_gzip_and_a_byte_order_mark(parse):
    parsed, table = parse(gzip.compress(b'\xef\xbb\xbf{"a": 1}\r\n{"a": 2}'))
    assert parsed.reading.file_format == "jsonl"
    assert table.to_pydict() == {"a": [1, 2]}


ARRAY = b'\xef\xbb\xbf [\n {"a": 1, "b": "x, ]"},\n {"b": null, "a": 2.5}\n]\n'
SPLIT = b'{"columns": ["a", "b"], "index": [0, 1], "data": [[1, "x, ]"], [2.5, null]], "total": 2}'


@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
@pytest.mark.parametrize("indent", [0, 2])
def test_objects_of_several_lines_are_rows(parse, faults, indent, end):
    rows = [{"a": 1, "b": "x"}, {"b": "}", "a": 2.5}, {"a": None, "columns": True}]
    data = "\n".join(json.dumps(row, indent=indent) for row in rows) + end
    table = parse(data.encode())[1]
    assert table.to_pydict() == {"a": [1, 2.5, None], "b": ["x", "}", None], "columns": [None, None, True]}
    assert faults(b'{\n"a": 1}\n{\n"a": SECRET}') == {"/row/2": "malformed_json"}
    assert faults(b'{\n"a": 1}\n{\n"a": {"b": 2}}') == {"/row/2/column/a": "nested"}


def test_nothing_behind_a_document_is_left_out_silently(parse, faults):
    assert parse(b'[{"a": 1}, {"a": 2}]\n[{"a": 3}]')[1].to_pydict() == {"a": [1, 2, 3]}
    assert faults(b'[{"a": 1}]\nSECRET') == {"/row/2": "malformed_json"}
    assert faults(b'{"columns": ["a"], "data": [[1]]} {"a": 2}') == {"": "malformed_json"}


@pytest.mark.parametrize("data", [ARRAY, SPLIT, gzip.compress(ARRAY)], ids=["array", "columns and data", "packed"])
def test_a_table_in_one_json_text(parse, data):
    parsed, table = parse(data)
    assert parsed.reading.file_format == "json"
    assert table.to_pydict() == {"a": [1, 2.5], "b": ["x, ]", None]}


def test_a_long_array_is_read_chunk_by_chunk(parse):
    rows = ",".join(f'{{"n": {number}, "s": "{"é" * (number % 9)}"}}' for number in range(50_000))
    parsed, table = parse(f"[{rows}]".encode())
    assert len(parsed.chunks) > 0
    assert table.column("n").to_pylist() == list(range(50_000))


def test_an_empty_array_has_no_columns(parse):
    with pytest.raises(InvalidData, match="no columns"):
        parse(b"[]")


VALUES = [
    "1", "-2.5", "1e3", "true", "null", '"word"', '"2024-01-31"', '"a:b"', '"a \\" : {[ b"', "9007199254740993", "1e16",
    "123456789012345678901234567890", "[1]", '{"c": 1}', "NaN", "1,", '"é"', "",
]  # fmt: skip


def drawn_lines(seed):
    """Lines of objects, most of them plain; some with other values, keys or ends."""
    rng = random.Random(seed)
    kinds = {name: rng.choice(VALUES[:9]) for name in "abc"[: rng.randrange(1, 4)]}
    lines = []
    for _ in range(rng.randrange(1, 40)):
        cells = {name: value if rng.random() < 0.9 else "null" for name, value in kinds.items()}
        if rng.random() < 0.03:
            cells[rng.choice("abcd")] = rng.choice(VALUES)
        colon = rng.choice([": ", ":", ":", " :"]) if rng.random() < 0.05 else ": "
        pairs = [f'"{name}"{colon}{value}' for name, value in cells.items() if rng.random() < 0.95]
        if rng.random() < 0.02:
            pairs += pairs[:1]
        line = "{" + ", ".join(pairs) + "}"
        odd = [f" {line} ", f"{line}, {line}", line[:-1], line[1:], line + "\r", "", "[]", line.replace(",", ",\n", 1)]
        lines.append(rng.choice(odd) if rng.random() < 0.03 else line)
    return "\n".join(lines).encode()


def test_rows_that_are_parsed_together_are_those_that_are_parsed_one_by_one(parse, monkeypatch):
    def outcome(data):
        try:
            parsed, table = parse(data, file_format="jsonl")
        except InvalidData as refused:
            return refused.detail, refused.faults
        return parsed.model_dump(), table.to_pydict()

    monkeypatch.setattr(jsonl, "BLOCK_ROWS", 7)
    files = [drawn_lines(seed) for seed in range(120)]
    together = [outcome(data) for data in files]
    monkeypatch.setattr(jsonl, "_parse_together", lambda _: None)
    for data, read in zip(files, together, strict=True):
        assert read == outcome(data), data.decode()
    assert 20 < sum(isinstance(read[0], dict) for read in together) < 120


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (b'{"a": {"x": 1}}', "This is an object: write each of its keys as a column of its own, such as 'a.x'."),
        (b'{"a": {}}', "This is an object: write each of its keys as a column of its own, such as 'a.key'."),
        (b'{"a": [1]}', "This is a list: write each of its elements as a column of its own, or as a row of its own."),
        (b"7", "This line is no JSON object: write one a line, with the names of the columns as its keys."),
        (b'{"a": 1} {"a": 2}', "This line is not JSON: the fault is at character 10; write one JSON object a line."),
        (b'{"a": "x"}', "This is a string; line 1 of this column has a number: write all of them alike."),
    ],
)
def test_a_fault_names_what_to_do(parse, line, sentence):
    with pytest.raises(InvalidData) as refused:
        parse(b'{"a": 1}\n' + line + b"\n")
    assert [fault.detail for fault in refused.value.faults] == [sentence]
