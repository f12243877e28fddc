"""Excel and OpenDocument workbooks: one sheet, its cells written as text and read by the rules of a CSV file.

A sheet is held in memory as a whole. Cells with an error such as #N/A are missing, rows without a value are skipped.
"""

import csv
import io
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, BinaryIO, NamedTuple, cast

from python_calamine import CalamineSheet, CalamineWorkbook, PasswordError

from app.base.errors import BodyTooLarge, InvalidData, ValiantError
from app.base.faults import Fault, place
from app.base.suggestions import one_of, quoted
from app.ingest import csv_reader as delimited
from app.ingest.reader_result import Reading
from app.ingest.upload_options import ReadOptions
from app.ingest.uploaded_file import Limits, Source
from app.ingest.zip_archive import list_members
from app.ml.tables.csv_dialect import Dialect

_SAVE_ANEW = "Open it in the program that wrote it, and save it as xlsx or CSV."
_LOCKED = "The workbook is protected by a password: save it without one."
ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
"""Name of the stream of a protected workbook of Office."""
MANIFEST, ENCRYPTION, MAX_MANIFEST_BYTES = "META-INF/manifest.xml", b"encryption-data", 1 << 20
"""File of an OpenDocument workbook, a word in that of a protected one, and the bytes in which it is looked for."""
ROWS = 256
"""Rows written at a time."""
UTF8 = "utf-8"
BIFF8, CODE_PAGE, UNICODE = b"\x09\x08\x10\x00\x00\x06\x05\x00", b"\x42\x00\x02\x00", b"\xb0\x04"
"""Beginning of the stream of a workbook, the head of its record of the code page, and the page 1200."""
MAX_CODE_PAGE_DISTANCE = 1024
"""Bytes between them, at most."""


def read(source: Source, limits: Limits, options: ReadOptions) -> Reading:
    _check_size(source, limits)
    content = source.open().read()
    if ENCRYPTED in content or _is_locked(content):
        raise InvalidData(_LOCKED)
    with _named():
        workbook = CalamineWorkbook.from_filelike(io.BytesIO(_with_code_page(content)))
        names = [sheet.name for sheet in workbook.sheets_metadata]
        name = _chosen(names, options.sheet)
        sheet = workbook.get_sheet_by_name(name)
    if not sheet.height:
        detail = f"The sheet {quoted(name)} is empty."
        advice = f"{detail} {_advice(names, name)}" if names[1:] else f"{detail} Choose or save one that has rows."
        raise InvalidData(detail, faults=[Fault(place("sheet"), advice, "empty_sheet")])
    try:
        reading = delimited.read(_Sheet(sheet), limits, options, dialect=Dialect(",", comment=options.comment))
    except InvalidData as refusal:
        if options.sheet is None and len(names) > 1:
            refusal.faults = (*refusal.faults, Fault(place("sheet"), _advice(names, name), "other_sheets"))
        raise
    warnings = [*_others(names, name), *_merged(sheet), *reading.warnings]
    return replace(reading, delimiter=None, encoding=None, warnings=warnings)


def _with_code_page(content: bytes) -> bytes:
    """The file; one of Excel 97 whose code page is not that of its format, as some programs write, with the right one.

    Texts of BIFF8 are Unicode whatever is in the record CODEPAGE ([MS-XLS] 2.4.52), but the reader follows it.
    """
    begin = content.find(BIFF8)
    page = content.find(CODE_PAGE, begin, begin + MAX_CODE_PAGE_DISTANCE)
    if begin < 0 or page < 0:
        return content
    return content[: page + len(CODE_PAGE)] + UNICODE + content[page + len(CODE_PAGE) + len(UNICODE) :]


def _is_locked(content: bytes) -> bool:
    """True for an OpenDocument workbook with a password."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive, archive.open(MANIFEST) as manifest:
            return ENCRYPTION in manifest.read(MAX_MANIFEST_BYTES)
    except (zipfile.BadZipFile, zlib.error, KeyError, OSError, EOFError, ValueError, NotImplementedError, RuntimeError):
        return False


@contextmanager
def _named() -> Iterator[None]:
    """Failures of the reader, whose panics are no Exceptions."""
    try:
        yield
    except (ValiantError, MemoryError):
        raise
    except PasswordError:
        raise InvalidData(_LOCKED) from None
    except BaseException:  # noqa: BLE001
        detail = f"The file is not readable as a workbook: it is damaged, or another kind of document. {_SAVE_ANEW}"
        raise InvalidData(detail) from None


def _check_size(source: Source, limits: Limits) -> None:
    if sum(member.file_size for member in list_members(source.open())) > limits.unpacked_bytes:
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


def _advice(names: Sequence[str], name: str) -> str:
    others = ", ".join(quoted(other) for other in names[:10] if other != name)
    return f"This is the first sheet, {quoted(name)}; to read another, give sheet={others}."


def _merged(sheet: CalamineSheet) -> list[str]:
    ranges = len(sheet.merged_cell_ranges or ())
    cells = "1 range of cells is" if ranges == 1 else f"{ranges} ranges of cells are"
    return [f"{cells} merged: only the first cell of each has a value, the others are missing."] if ranges else []


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
