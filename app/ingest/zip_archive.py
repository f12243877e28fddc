"""Zip archives: the one table that they hold, which is read while it is decompressed."""

import io
import zipfile
from collections.abc import Sequence
from functools import partial
from pathlib import PurePosixPath
from typing import BinaryIO, NamedTuple, NoReturn, cast

from app.base.errors import InvalidData
from app.base.faults import Fault, place
from app.base.suggestions import one_of, quoted
from app.ingest.compression import Layer, without_suffix

ZIP = b"PK\x03\x04"
EMPTY_ZIP = b"PK\x05\x06"
MAX_LISTED_MEMBERS = 10
BUFFER_BYTES = 1 << 16
ENCRYPTED = 1
"""Bit of the flags of a member."""
_TABLES = {
    ".csv", ".tsv", ".tab", ".txt", ".dat", ".data", ".psv", ".json", ".jsonl", ".ndjson", ".parquet", ".arrow",
    ".feather", ".arrows", ".npy", ".xlsx", ".xlsm", ".xlsb", ".xls", ".ods", ".arff", ".svm", ".libsvm", ".svmlight",
}  # fmt: skip
"""Suffixes of files that hold tables."""
_PROSE = ("readme", "license", "licence", "copying", "notice", "changelog")
"""Beginnings of the names of files that hold none, whatever their suffix."""
_CLUTTER = {"__MACOSX", "Thumbs.db", "desktop.ini"}
"""Files and folders that systems add."""


class Member(NamedTuple):
    """A file in an archive that is read as the table."""

    name: str
    layer: Layer
    others: tuple[str, ...]
    """Names of the files beside it."""


def list_members(file: BinaryIO) -> list[zipfile.ZipInfo]:
    """The files in a zip archive; none if it is none, or damaged."""
    try:
        with zipfile.ZipFile(file) as archive:
            return archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return []


def find_table(file: BinaryIO, wanted: str | None) -> Member:
    """The member of this name; if None, the only table. Raises InvalidData where there is none, or are several."""
    members = [member for member in list_members(file) if not member.is_dir() and _is_of_user(member.filename)]
    names = [member.filename for member in members]
    if not names:
        _refuse("The zip archive holds no file, is damaged or was cut: pack the table and upload it again.", "no_table")
    name = wanted or _only_table(names)
    if name not in names:
        detail = f"The zip archive has no file {quoted(name)}{one_of(name, names)}"
        raise InvalidData(detail, faults=[Fault(place("member"), detail, "unknown_member")])
    info = members[names.index(name)]
    if info.flag_bits & ENCRYPTED:
        _refuse(f"The file {quoted(name)} of the zip archive is encrypted: pack it without a password.", "encrypted")
    layer = Layer(f"zip compression of {quoted(name)}", partial(_open, info=info))
    return Member(name, layer, tuple(other for other in names if other != name))


def _is_of_user(name: str) -> bool:
    parts = PurePosixPath(name.replace("\\", "/")).parts
    return not any(part in _CLUTTER or part.startswith(".") for part in parts)


def _only_table(names: Sequence[str]) -> str:
    """The only one that may be a table. Raises InvalidData where there are several."""
    tables = [name for name in names if _is_table(name)] or names
    if len(tables) > 1:
        _refuse(
            f"The zip archive holds {len(tables)} files, {listed(tables)}: give the one that is the table as "
            f"member={tables[0]}, or upload each as a dataset of its own.",
            "several_tables",
        )
    return tables[0]


def listed(names: Sequence[str]) -> str:
    """The first names, in quotes, and the number of the others."""
    more = f" and {len(names) - MAX_LISTED_MEMBERS} more" if len(names) > MAX_LISTED_MEMBERS else ""
    return ", ".join(quoted(name) for name in names[:MAX_LISTED_MEMBERS]) + more


def _is_table(name: str) -> bool:
    path = PurePosixPath(without_suffix(name.replace("\\", "/")).lower())
    return path.suffix in _TABLES and not path.name.startswith(_PROSE)


def _open(file: BinaryIO, *, info: zipfile.ZipInfo) -> BinaryIO:
    try:
        buffered = io.BufferedReader(cast("io.RawIOBase", file), BUFFER_BYTES)
        return cast("BinaryIO", zipfile.ZipFile(buffered).open(info))
    except (NotImplementedError, RuntimeError):
        _refuse(
            f"The file {quoted(info.filename)} of the zip archive is compressed by a method that is not read: pack it "
            "by deflate, or upload it as it is.",
            "compression_method",
        )


def _refuse(detail: str, code: str) -> NoReturn:
    raise InvalidData(detail, faults=[Fault(place("member"), detail, code)])
