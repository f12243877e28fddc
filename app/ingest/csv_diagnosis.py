"""Diagnosis of a malformed CSV file, to the line and column. Slow and exact: read only when Arrow refused the file.

Lines are counted from 1 as an editor does, those inside quoted values included. The line of a fault is
the one its field starts on. No fault repeats a value.
"""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import BinaryIO, NamedTuple

from app.base.faults import Fault, place
from app.ingest.csv_layout import Layout
from app.ingest.reader_result import FAULTS_LISTED
from app.ingest.uploaded_file import NOT_UTF8

_END = "\x1f\n"
_NEWLINE = re.compile(r"\r\n|\r|\n")
_NOT_TEXT = re.compile("[\udc80-\udcff]")


class _Row(NamedTuple):
    line: int
    fields: Sequence[str]

    def line_of(self, field: int) -> int:
        return self.line + sum(len(_NEWLINE.findall(value)) for value in self.fields[:field])


class _TooLong(Exception):
    """A line or a field without end."""


def diagnose(file: BinaryIO, layout: Layout, *, longest: int) -> list[Fault]:
    """The first faults of the rows; none if every row is as wide as the names and readable."""
    return list(islice(_faults(file, layout, longest), FAULTS_LISTED))


def _faults(file: BinaryIO, layout: Layout, longest: int) -> Iterator[Fault]:
    for row in rows_of(file, layout, longest):
        if isinstance(row, Fault):
            yield row
        elif row.line < layout.values_line:
            yield from _unclosed(row, [])  # what looks like a name holds values, then
        else:
            yield from _unclosed(row, layout.names) or _row_faults(row, layout.names, longest)


def rows_of(file: BinaryIO, layout: Layout, longest: int) -> Iterator[_Row | Fault]:
    """Rows up to the first that has no end, and without blank lines where these are no rows."""
    reader = csv.reader(_lines(file, longest), delimiter=layout.delimiter)
    line = 1
    try:
        for fields in reader:
            if fields != [_END.strip("\n")] and (fields or (layout.keeps_blank_lines and line >= layout.values_line)):
                yield _Row(line, fields or [""])
            line = reader.line_num + 1
    except (_TooLong, csv.Error):
        detail = f"A row or field is longer than {longest} bytes; if a quote is never closed, close or double it."
        yield Fault(place("line", line), detail, "too_long")


def _lines(file: BinaryIO, longest: int) -> Iterator[str]:
    """The lines, and behind them one of its own: an open quote swallows it."""
    text = io.TextIOWrapper(file, "utf-8-sig", errors="surrogateescape", newline="")
    line = ""
    while chunk := text.readline(longest):
        line = chunk
        if len(line) == longest:
            raise _TooLong
        yield line
    if not line.endswith(("\n", "\r")):
        yield "\n"
    yield _END


def _unclosed(row: _Row, names: Sequence[str]) -> list[Fault]:
    if not row.fields[-1].endswith(_END):
        return []
    field = len(row.fields) - 1
    return [Fault(_place(row, field, names), "A quote opened here is never closed.", "unclosed_quote")]


def _row_faults(row: _Row, names: Sequence[str], longest: int) -> Iterator[Fault]:
    width, required = len(row.fields), len(names)
    if width != required:
        where = place("line", row.line, "column", names[width]) if width < required else place("line", row.line)
        yield Fault(where, f"This row and the header differ in length: {width} and {required} fields.", "ragged_row")
    if sum(map(len, row.fields)) + width > longest:
        yield Fault(place("line", row.line), f"This row is longer than {longest} bytes.", "too_long")
    for field, value in enumerate(row.fields):
        if "\0" in value:
            yield Fault(_place(row, field, names), "The value holds the character U+0000.", "nul_character")
        if _NOT_TEXT.search(value):
            yield Fault(_place(row, field, names), f"The value is not valid UTF-8: {NOT_UTF8}", "not_utf8")


def _place(row: _Row, field: int, names: Sequence[str]) -> str:
    name = names[field] if field < len(names) else field + 1
    return place("line", row.line_of(field), "column", name)
