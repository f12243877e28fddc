"""Layout of a CSV file: what stands above its table, the names of its columns, and where its values begin."""

import csv
import io
import re
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from app.base.faults import Fault, place
from app.ingest.cell_patterns import cell_kind
from app.ingest.csv_header import column_kind, columns_of, has_header, has_names
from app.ingest.reader_result import NAME_LENGTH, check_names, refuse
from app.ingest.upload_options import DuplicateNames, ReadOptions
from app.ingest.uploaded_file import BOM, NOT_UTF8, Limits
from app.ml.contract.distinct_names import TakenNames
from app.ml.contract.missing_markers import MARKERS, MISSING
from app.ml.tables.csv_dialect import MAX_LINES_ABOVE, SAMPLED_ROWS, Dialect, usual_width

HEADER_BYTES = 4 << 20
_NOT_UTF8 = re.compile("[\udc80-\udcff]")


_LEFT_OUT_ABOVE = (
    "The table begins below {} of the file, which were left out; to read it otherwise, give skip_rows or header_row."
)
_SECOND_HEADER = (
    "Line {0} holds a second row of names or units and was left out; to name the columns by it, give header_row={0}."
)
_ONE_COLUMN = "The file was read as one column, although each line has {} parts between {}: give the delimiter."


_SOME_PARTS = "The file was read as one column, although {} lines have {}: give the delimiter or header_row."
MIN_MARKED_SHARE = 0.2
"""Share of the lines of one column that have a delimiter, from which on there is a warning."""


class Layout(NamedTuple):
    delimiter: str
    names: tuple[str, ...]
    offset: int
    """Bytes in front of the first row of values."""
    header: bool
    """True if a row holds the names."""
    values_line: int = 1
    """Line of the first row of values, at the earliest."""
    unnamed: tuple[int, ...] = ()
    """Columns without a name in the header, by their place from 0; but for an index."""
    index_name: str | None = None
    """The name given to an index column."""
    warnings: tuple[str, ...] = ()
    skips_blank_lines: bool = False
    """True if a blank line is no row, even in a file of one column."""

    @property
    def keeps_blank_lines(self) -> bool:
        """True if a blank line is a row with a missing value, as in a file of one column."""
        return len(self.names) == 1 and not self.skips_blank_lines

    def warnings_without(self, empty: Collection[int]) -> list[str]:
        """The warnings, if these columns without a name turn out to have no values and are left out."""
        unnamed = [_no_name(number, self.names[number]) for number in self.unnamed if number not in empty]
        left_out = ", ".join(str(number + 1) for number in sorted(empty))
        gone = f"Columns without a name and without values were left out: {left_out} of {len(self.names)}."
        return [*self.warnings, *unnamed, *([gone] if empty else [])]


class _Row(NamedTuple):
    cells: tuple[str, ...]
    line: int
    end: int
    """Characters up to the end of the row."""

    @property
    def filled(self) -> int:
        """Number of cells that are not empty."""
        return sum(map(bool, self.cells))


def find_layout(head: bytes, limits: Limits, options: ReadOptions, dialect: Dialect) -> Layout:
    """Layout of a plain file that begins with these HEADER_BYTES; its offset is their end if nothing follows the names.

    Raises InvalidData for names that cannot be used.
    """
    text = head.removeprefix(BOM).decode("utf-8", "surrogateescape")
    rows = list(_rows(text, dialect.written))
    if not rows:
        return Layout(dialect.written, (), len(head), header=True)
    above, warnings = _lines_above(rows, options)
    first, *below = rows[above:] or rows[-1:]
    whole = below[:-1] if len(head) == HEADER_BYTES and below and below[-1].end == len(text) else below
    header, doubts = has_header(first.cells, [row.cells for row in whole], options)
    if header and first.end == len(text):
        return Layout(dialect.written, first.cells, len(head), header=True, values_line=first.line + 1)
    if not header:
        names = _numbered(first.cells, limits)
        start = rows[above - 1].end if above else 0
        layout = Layout(dialect.written, names, start, header=False, values_line=first.line)
    else:
        _check_text(first.cells, first.line)
        second, more = _second_header(first, whole)
        layout = _named(_filled(first, second), [row.cells for row in whole], options)
        last = second or first
        layout = layout._replace(offset=last.end, values_line=_next_line(text, last))
        warnings += more
        check_names(layout.names, limits, "line", first.line)
    return layout._replace(
        delimiter=dialect.written,
        offset=len(head) - len(head.removeprefix(BOM)) + len(text[: layout.offset].encode("utf-8", "surrogateescape")),
        warnings=(*warnings, *doubts, *layout.warnings, *_one_column(layout.names, whole)),
    )


def _rows(text: str, delimiter: str) -> Iterator[_Row]:
    """The first rows that are not blank."""
    lines = io.StringIO(text, newline="")
    reader = csv.reader(lines, delimiter=delimiter)
    line = 1
    for number, row in enumerate(reader):
        if row:
            yield _Row(tuple(cell.strip() for cell in row), line, lines.tell())
        if number > SAMPLED_ROWS + MAX_LINES_ABOVE:
            return
        line = reader.line_num + 1


def _next_line(text: str, row: _Row) -> int:
    ended = text[: row.end]
    return ended.count("\n") + ended.replace("\r\n", "\n").count("\r") + 1


# lines above the table


def _lines_above(rows: Sequence[_Row], options: ReadOptions) -> tuple[int, tuple[str, ...]]:
    """The number of rows above the table, and a warning that names them."""
    if options.header_row is not None:
        return sum(row.line < options.header_row for row in rows), ()
    if options.skip_rows is not None:
        return sum(row.line <= options.skip_rows for row in rows), ()
    width = usual_width([row.cells for row in rows])
    above = next((number for number, row in enumerate(rows) if _begins_table(rows, number, width)), 0)
    if not 0 < above <= min(MAX_LINES_ABOVE, len(rows) - 2) or width < 2:
        return 0, ()
    last = rows[above].line - 1
    lines = "line 1" if last == 1 else f"lines 1 to {last}"
    return above, (_LEFT_OUT_ABOVE.format(lines),)


def _begins_table(rows: Sequence[_Row], number: int, width: int) -> bool:
    """True if the row may be the first of a table of so many columns.

    A row of one cell is a title where the table has more columns; one of several cells is above it only if the row
    behind it holds names of columns of numbers.
    """
    row = rows[number]
    if len(row.cells) == width and (row.filled > 1 or not row.cells[0]):
        return True
    if len(row.cells) >= width:
        return len(row.cells) > width
    if row.filled <= 1 or row.cells[0].startswith("#"):
        return False
    behind = [each.cells for each in rows[number + 1 :] if len(each.cells) == width]
    return not (behind and has_names(behind[0], columns_of(behind[1:], width)))


# names


def _second_header(first: _Row, below: Sequence[_Row]) -> tuple[_Row | None, tuple[str, ...]]:
    """A second row of names or units above columns of numbers, and a warning that it was left out; None without."""
    if len(below) < 3 or not len(below[0].cells) == len(first.cells) > 1:
        return None, ()
    second, *values = below
    columns = columns_of([row.cells for row in values], len(first.cells))
    words = [cell not in MISSING and cell.lower() not in MARKERS and not cell_kind(cell) for cell in second.cells]
    numbers = sum(word and column_kind(column) is not None for word, column in zip(words, columns, strict=True))
    if (
        not numbers
        or sum(words) < second.filled
        or any(word and cell in column for word, cell, column in zip(words, second.cells, columns, strict=True))
    ):
        return None, ()
    if numbers < 2 and sum(words) < len(words):  # a stray cell in a row of values
        return None, ()
    return second, (_SECOND_HEADER.format(second.line),)


def _filled(first: _Row, second: _Row | None) -> tuple[str, ...]:
    """The names, of the second row where the first has none."""
    if second is None:
        return first.cells
    return tuple(name or below for name, below in zip(first.cells, second.cells, strict=True))


def _one_column(names: Sequence[str], rows: Sequence[_Row]) -> tuple[str, ...]:
    """A warning about one column of texts whose lines look like rows of several cells."""
    if len(names) != 1:
        return ()
    for mark in (" ", ":", "\t", "~", "^") if len(rows) > 2 else ():
        widths = {len(row.cells[0].split(mark) if mark != " " else row.cells[0].split()) for row in rows}
        if len(widths) == 1 and widths != {1}:
            return (_ONE_COLUMN.format(widths.pop(), _MARKS[mark]),)
    for mark in (";", "\t", "|"):
        lines = sum(mark in row.cells[0] for row in rows)
        if lines > 1 and lines > MIN_MARKED_SHARE * len(rows):
            return (_SOME_PARTS.format(lines, _MARKS[mark]),)
    return ()


_MARKS = {";": "semicolons", "|": "bars", " ": "blanks", ":": "colons", "\t": "tabs", "~": "tildes", "^": "carets"}


def _numbered(first: Sequence[str], limits: Limits) -> tuple[str, ...]:
    names = tuple(f"column_{number}" for number in range(1, len(first) + 1))
    check_names(names, limits)
    return names


def _check_text(names: Sequence[str], line: int) -> None:
    """Raises InvalidData unless the names are UTF-8."""
    faults = [
        Fault(place("line", line, "column", number), f"The name is not valid UTF-8: {NOT_UTF8}", "not_utf8")
        for number, name in enumerate(names, start=1)
        if _NOT_UTF8.search(name)
    ]
    if faults:
        refuse(faults)
    if names and all("\0" in name for name in names):
        where = place("line", line)
        advice = "The line looks like UTF-16: give its encoding, encoding=utf-16-le or encoding=utf-16-be."
        refuse([Fault(where, advice, "not_utf8")])


def _named(first: Sequence[str], rows: Sequence[Sequence[str]], options: ReadOptions) -> Layout:
    """The names of a header; a column without one is an index that counts rows, or called by its number."""
    names = list(first)
    unnamed = tuple(number for number, name in enumerate(names) if not name)
    index = None
    warnings = tidy_names(names, options)
    taken = TakenNames(names)
    for number in unnamed:
        if number == 0 and len(names) > 1 and _counts_up([row[0].strip() for row in rows if row]):
            names[number] = index = taken.free("index")
            warnings.append(f"The first column has no name and counts the rows: it was read as '{index}'.")
        else:
            names[number] = taken.free(f"column_{number + 1}")
    return Layout(
        "",
        tuple(names),
        0,
        header=True,
        unnamed=tuple(number for number in unnamed if names[number] != index),
        index_name=index,
        warnings=tuple(warnings),
    )


def tidy_names(names: list[str], options: ReadOptions) -> list[str]:
    """Shorten and number names in place; returns a warning about each."""
    return [*_shorten(names), *(_number(names) if options.duplicate_names is DuplicateNames.NUMBER else ())]


def _shorten(names: list[str]) -> Iterator[str]:
    """Cut names that are too long, and warn about each."""
    taken = TakenNames(names)
    for number, name in enumerate(names):
        if len(name) > NAME_LENGTH:
            names[number] = taken.free(name[: NAME_LENGTH - 10].rstrip())
            yield f"The name of column {number + 1} has {len(name)} characters: it was shortened to the first of them."


def _number(names: list[str]) -> Iterator[str]:
    """Number names that occur before, and warn about each."""
    taken = TakenNames(names)
    before = set[str]()
    for number, name in enumerate(names):
        if name and name in before:
            names[number] = taken.free(name)
            yield f"Column {number + 1} has the name of another column: it was read as '{names[number]}'."
        before.add(names[number])


def _no_name(number: int, name: str) -> str:
    return f"Column {number + 1} has no name: it was read as '{name}'."


def _counts_up(cells: Sequence[str]) -> bool:
    if not cells or not all(cell.isascii() and cell.isdigit() for cell in cells):
        return False
    numbers = [int(cell) for cell in cells]
    return numbers[0] in {0, 1} and all(after == before + 1 for before, after in pairwise(numbers))
