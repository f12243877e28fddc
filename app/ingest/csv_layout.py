"""Layout of a CSV file: its delimiter, the names of its columns, and where its values begin."""

import csv
import io
import re
from collections.abc import Collection, Sequence
from itertools import count, islice, pairwise
from typing import NamedTuple

from app.faults import Fault, place
from app.ingest.reader_result import check_names, refuse
from app.ingest.upload_options import HeaderRow, ReadOptions
from app.ingest.uploaded_file import BOM, HEAD, NOT_UTF8, Limits
from app.ml.contract.missing_markers import MISSING

HEADER_BYTES = 4 << 20
DELIMITERS = ",;\t|"
SAMPLED = 100
"""Rows looked at to find the delimiter and an index column."""
_NUMBER = re.compile(r"\s*[-+]?(\d++(?:\.\d*+)?|\.\d++)([eE][-+]?\d++)?\s*+")
_NOT_UTF8 = re.compile("[\udc80-\udcff]")


class Layout(NamedTuple):
    delimiter: str
    names: tuple[str, ...]
    offset: int
    """Bytes in front of the first row of values."""
    header: bool
    """True if the first row holds the names."""
    unnamed: tuple[int, ...] = ()
    """Columns without a name in the header, by their place from 0; but for an index."""
    index_name: str | None = None
    """The name given to an index column."""
    warnings: tuple[str, ...] = ()

    def warnings_without(self, empty: Collection[int]) -> list[str]:
        """The warnings, if these columns without a name turn out to have no values and are left out."""
        kept = [_no_name(at, self.names[at]) for at in self.unnamed if at not in empty]
        left_out = ", ".join(str(at + 1) for at in sorted(empty))
        gone = f"Columns without a name and without values were left out: {left_out} of {len(self.names)}."
        return [*self.warnings, *kept, *([gone] if empty else [])]


def find_layout(head: bytes, limits: Limits, options: ReadOptions, delimiters: str) -> Layout:
    """Layout of the first HEADER_BYTES of a file; its offset is their end if no row follows the names."""
    text = head.removeprefix(BOM).decode("utf-8", "surrogateescape")
    delimiter = max(delimiters, key=lambda d: (_agreement(text[:HEAD], d), -delimiters.index(d)))
    first, behind, line = _first_row(text, delimiter)
    skipped = len(head) - len(head.removeprefix(BOM))
    header, warnings = _has_header(first, delimiter, options)
    if not first or (header and behind == len(text)):
        return Layout(delimiter, first, len(head), header=True)
    if not header:
        return Layout(delimiter, _numbered(first, limits), skipped, header=False, warnings=warnings)
    _check_text(first, line)
    offset = skipped + len(text[:behind].encode("utf-8", "surrogateescape"))
    named = _named(first, _rows(text[behind:], delimiter))
    check_names(named.names, limits, "line", line)
    return named._replace(delimiter=delimiter, offset=offset, warnings=(*warnings, *named.warnings))


def _agreement(text: str, delimiter: str) -> tuple[float, int]:
    """Share of the first rows with as many fields as the header, if these are several; and the number of fields."""
    rows = _rows(text, delimiter)
    width = len(rows[0]) if rows else 0
    return (sum(len(row) == width for row in rows) / len(rows), width) if width > 1 else (0.0, 0)


def _rows(text: str, delimiter: str) -> list[list[str]]:
    """The first rows that are not blank, without the last, which may be cut."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows = list(islice(filter(None, reader), SAMPLED))
    return rows[:-1] if len(rows) > 1 else rows


def _first_row(text: str, delimiter: str) -> tuple[tuple[str, ...], int, int]:
    """Its cells, the characters up to its end, and its line."""
    lines = io.StringIO(text, newline="")
    reader = csv.reader(lines, delimiter=delimiter)
    line = 1
    for row in reader:
        if row:
            return tuple(cell.strip() for cell in row), lines.tell(), line
        line = reader.line_num + 1
    return (), len(text), line


# names


def _has_header(first: Sequence[str], delimiter: str, options: ReadOptions) -> tuple[bool, tuple[str, ...]]:
    """True if the first row holds the names, and a warning where that is uncertain."""
    if options.header is not HeaderRow.DETECT:
        return options.header is HeaderRow.PRESENT, ()
    markers = {*MISSING, *options.missing}
    cells = [cell for cell in first if cell not in markers]
    numbers = [cell for cell in cells if _NUMBER.fullmatch(cell.replace(",", ".") if delimiter == ";" else cell)]
    if not numbers or numbers == [str(number) for number in range(len(numbers))]:
        doubt = "The column names are 0, 1, 2, …: if the first row holds values, upload the file with header=absent."
        return True, (doubt,) if numbers else ()
    if len(numbers) == len(cells) or len(set(numbers)) < len(numbers):
        doubt = "The first row holds numbers and was read as values: if it holds names, upload it with header=present."
        return False, (doubt,)
    doubt = "Most column names are numbers: if the first row holds values, upload the file with header=absent."
    return True, (doubt,) if 2 * len(numbers) > len(cells) else ()


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


def _named(first: Sequence[str], rows: Sequence[Sequence[str]]) -> Layout:
    """The names of a header; a column without one is an index that counts rows, or called by its number."""
    names = list(first)
    unnamed = tuple(at for at, name in enumerate(names) if not name)
    index = None
    warnings = []
    for at in unnamed:
        if at == 0 and len(names) > 1 and _counts_up([row[0].strip() for row in rows if row]):
            names[at] = index = _free("index", names)
            warnings.append(f"The first column has no name and counts the rows: it was read as '{index}'.")
        else:
            names[at] = _free(f"column_{at + 1}", names)
    return Layout(
        "",
        tuple(names),
        0,
        header=True,
        unnamed=tuple(at for at in unnamed if names[at] != index),
        index_name=index,
        warnings=tuple(warnings),
    )


def _no_name(at: int, name: str) -> str:
    return f"Column {at + 1} has no name: it was read as '{name}'."


def _counts_up(cells: Sequence[str]) -> bool:
    if not cells or not all(cell.isascii() and cell.isdigit() for cell in cells):
        return False
    numbers = [int(cell) for cell in cells]
    return numbers[0] in {0, 1} and all(after == before + 1 for before, after in pairwise(numbers))


def _free(name: str, names: Sequence[str]) -> str:
    """The name, or it with the first number that makes it new."""
    candidates = (name if number == 1 else f"{name}_{number}" for number in count(1))
    return next(candidate for candidate in candidates if candidate not in names)
