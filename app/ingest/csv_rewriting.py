"""CSV files of any dialect, rewritten while they are read as the plain ones that Arrow reads.

The lines of both have the same numbers.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import BinaryIO, NamedTuple, Protocol

from app.ingest.chunked_file import open_chunks
from app.ml.tables.csv_dialect import Dialect

ROWS_AT_ONCE = 256
_END = "\x02"
"""A line of its own behind the file: a quote that is never closed swallows it."""


class Text(Protocol):
    """A text that can be read several times, as UTF-8."""

    @property
    def encoding(self) -> str:
        """Encoding of the file."""

    def open(self) -> BinaryIO:
        """From the start."""


class Rewritten(NamedTuple):
    """A text of any dialect as one that Arrow reads, with the same lines."""

    text: Text
    dialect: Dialect

    @property
    def encoding(self) -> str:
        return self.text.encoding

    def open(self) -> BinaryIO:
        return open_chunks(_written(self.text.open(), self.dialect))


def _written(file: BinaryIO, dialect: Dialect) -> Iterator[bytes]:
    """The rows as bytes of a plain CSV file, some at a time."""
    lines = io.TextIOWrapper(file, "utf-8-sig", errors="surrogateescape", newline="")
    rows = dialect.cells(chain(lines, [_END]))
    before = 0
    while some := list(islice(rows, ROWS_AT_ONCE)):
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter=dialect.written, lineterminator="\n")
        for line, row in some:
            if row and row[-1].endswith(_END):
                text.write("" if row == [_END] else _unclosed(row, dialect.written))
            elif row:
                writer.writerow(row)
            inner = sum(cell.count("\n") for cell in row)
            text.write("\n" * (line - before - inner - bool(row)))
            before = line
        yield text.getvalue().encode("utf-8", "surrogateescape")


def _unclosed(row: Sequence[str], delimiter: str) -> str:
    """A row whose last cell has no closing quote, as in the file."""
    return delimiter.join('"' + cell.replace('"', '""') + '"' for cell in row).removesuffix(_END + '"')
