"""Excel and OpenDocument workbooks: one sheet, its cells written as text and read by the rules of a CSV file.

A sheet is held in memory as a whole. Cells with an error such as #N/A are missing, rows without a value are skipped.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, BinaryIO, NamedTuple, cast

from python_calamine import CalamineSheet, CalamineWorkbook, PasswordError

from app.errors import BodyTooLarge, InvalidData, ValiantError
from app.faults import Fault, place
from app.ingest import csv_reader as delimited
from app.ingest.file_format_detection import members
from app.ingest.reader_result import Reading
from app.ingest.upload_options import ReadOptions
from app.ingest.uploaded_file import Limits, Source
from app.suggestions import one_of, quoted

ROWS = 256
"""Rows written at a time."""
UTF8 = "utf-8"


def read(source: Source, limits: Limits, options: ReadOptions) -> Reading:
    _check_size(source, limits)
    with _named():
        workbook = CalamineWorkbook.from_filelike(source.open())
        names = [sheet.name for sheet in workbook.sheets_metadata]
        name = _chosen(names, options.sheet)
        sheet = workbook.get_sheet_by_name(name)
    if not sheet.height:
        detail = f"The sheet {quoted(name)} is empty."
        raise InvalidData(detail, faults=[Fault(place("sheet"), detail, "empty_sheet")])
    reading = delimited.read(_Sheet(sheet), limits, options, delimiters=",")
    return replace(reading, delimiter=None, encoding=None, warnings=[*_others(names, name), *reading.warnings])


@contextmanager
def _named() -> Iterator[None]:
    """Failures of the reader, whose panics are no Exceptions."""
    try:
        yield
    except (ValiantError, MemoryError):
        raise
    except PasswordError:
        raise InvalidData("The workbook is protected by a password: save it without one.") from None
    except BaseException:  # noqa: BLE001
        detail = "The file is not readable as a workbook: it is damaged, or another kind of document."
        raise InvalidData(detail) from None


def _check_size(source: Source, limits: Limits) -> None:
    if sum(member.file_size for member in members(source)) > limits.unpacked_bytes:
        raise BodyTooLarge(f"Unpacked, the workbook is larger than {limits.unpacked_bytes} bytes.")


def _chosen(names: Sequence[str], required: str | None) -> str:
    """The name of the sheet. Raises InvalidData if there is none."""
    if required is not None and required in names:
        return required
    number = 1 if required is None else int(required) if required.isascii() and required.isdigit() else 0
    if 1 <= number <= len(names):
        return names[number - 1]
    detail = f"The workbook has no sheet {quoted(required or '1')}{one_of(required, names)}"
    raise InvalidData(detail, faults=[Fault(place("sheet"), detail, "unknown_sheet")])


def _others(names: Sequence[str], name: str) -> list[str]:
    others = ", ".join(quoted(other) for other in names[:10] if other != name)
    return [f"Only the sheet {quoted(name)} was read; the workbook also has {others}."] if others else []


class _Sheet(NamedTuple):
    """A sheet as a CSV file."""

    sheet: CalamineSheet
    encoding: str = UTF8

    def open(self) -> BinaryIO:
        return cast("BinaryIO", io.BufferedReader(_Written(self.sheet), 1 << 20))


class _Written(io.RawIOBase):
    """The rows of a sheet as the bytes of a CSV file."""

    def __init__(self, sheet: CalamineSheet) -> None:
        self._rows, self._waiting = sheet.iter_rows(), b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # what BufferedReader hands in
        while not self._waiting:
            rows = list(islice(self._rows, ROWS))
            if not rows:
                return 0
            self._waiting = _csv(rows)
        chunk, self._waiting = self._waiting[: len(buffer)], self._waiting[len(buffer) :]
        buffer[: len(chunk)] = chunk
        return len(chunk)


def _csv(rows: Sequence[Sequence[Any]]) -> bytes:
    written = io.StringIO(newline="")
    texts = ([_text(cell) for cell in row] for row in rows)
    csv.writer(written, lineterminator="\n").writerows(row for row in texts if any(row))
    return written.getvalue().encode()


def _text(cell: Any) -> str:
    """Numbers and times as a program writes them; booleans as true and false."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return str(int(cell))
    if isinstance(cell, timedelta):
        return repr(cell.total_seconds())
    return cell.isoformat(" ") if isinstance(cell, datetime) else str(cell)
