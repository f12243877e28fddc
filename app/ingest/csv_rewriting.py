"""CSV files of any dialect, rewritten while they are read as the plain ones that Arrow reads.

The lines of both have the same numbers.
"""

import csv
import io
from collections.abc import Sequence
from itertools import islice
from typing import BinaryIO, NamedTuple, Protocol, cast

from app.ml.tables.csv_dialect import Dialect


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
        return cast("BinaryIO", io.BufferedReader(_Rows(self.text.open(), self.dialect), 1 << 20))


class _Rows(io.RawIOBase):
    """The rows as bytes of a plain CSV file."""

    def __init__(self, file: BinaryIO, dialect: Dialect) -> None:
        text = io.TextIOWrapper(file, "utf-8-sig", errors="surrogateescape", newline="")
        self._rows = dialect.cells(iter(text))
        self._delimiter, self._line, self._waiting = dialect.written, 0, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # what BufferedReader hands in
        while not self._waiting:
            rows = list(islice(self._rows, 256))
            if not rows:
                return 0
            self._waiting = self._written(rows)
        chunk, self._waiting = self._waiting[: len(buffer)], self._waiting[len(buffer) :]
        buffer[: len(chunk)] = chunk
        return len(chunk)

    def _written(self, rows: Sequence[tuple[int, list[str]]]) -> bytes:
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter=self._delimiter, lineterminator="\n")
        for line, row in rows:
            if row:
                writer.writerow(row)
            inner = sum(cell.count("\n") for cell in row)
            text.write("\n" * (line - self._line - inner - bool(row)))
            self._line = line
        return text.getvalue().encode("utf-8", "surrogateescape")
