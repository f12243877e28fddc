"""The result of every format's reader, and the faults they share."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

import pyarrow as pa

from app.base.errors import InvalidData
from app.base.faults import Fault, place
from app.ingest.uploaded_file import Limits
from app.ml.tables.data_sheet import Remark

FAULTS_LISTED = 20
_EQUAL_NAMES = (
    "Another column has this name: rename one of them, or upload a CSV file or a workbook with duplicate_names=number."
)
NAME_LENGTH = 200


@dataclass(frozen=True)
class Reading:
    """A table that comes in batches. The columns' types are those of `app.ml.contract.columns`."""

    names: Sequence[str]
    types: Sequence[pa.DataType]
    batches: Iterator[Sequence[pa.Array]]
    """Batches of any type that `columns.settle` turns into the column's own."""
    warnings: list[str] = field(default_factory=list)
    delimiter: str | None = None
    """Delimiter of a CSV file."""
    quoted: bool = True
    """False where the quotes of a CSV file are letters."""
    encoding: str | None = None
    """Encoding of a text file."""
    decimal: Callable[[], str | None] = lambda: None
    """Decimal mark of the numbers of a text file, once all batches are read; None: none has one, or they differ."""
    index: str | None = None
    """A column that counts the rows, and had no name."""
    header: bool | None = None
    """True if the first row held the names; None where the format has names of its own."""
    remarks: Callable[[], Mapping[str, Remark]] = dict
    """Notation of the columns, by name; complete when all batches are read."""


def refuse(faults: Sequence[Fault]) -> NoReturn:
    count = "1 fault was" if len(faults) == 1 else f"{len(faults)} faults were"
    more = " The search stopped there." if len(faults) >= FAULTS_LISTED else ""
    raise InvalidData(f"{count} found in the file: see errors.{more}", faults=faults[:FAULTS_LISTED])


def check_names(names: Sequence[str], limits: Limits, *before: object) -> None:
    """Names must be there, be unique and be text; a column without a usable name is called by its number from 1.

    `before` are steps of the pointer in front of the column's.
    """
    if not names:
        raise InvalidData("The file has no columns: upload one that has some.")
    if len(names) > limits.max_columns:
        raise InvalidData(
            f"The file has {len(names)} columns; this service accepts {limits.max_columns}: upload fewer, or raise "
            "VALIANT_MAX_COLUMNS."
        )
    faults = list(_name_faults(names, before))
    if faults:
        refuse(faults)


def _name_faults(names: Iterable[str], before: tuple[object, ...]) -> Iterator[Fault]:
    seen: set[str] = set()
    for number, name in enumerate(names, start=1):
        if not name.strip():
            yield Fault(place(*before, "column", number), "This column has no name.", "unnamed_column")
        elif len(name) > NAME_LENGTH or any(c == "\0" or "\ud800" <= c <= "\udfff" for c in name):
            detail = f"A column's name is at most {NAME_LENGTH} characters of valid text."
            yield Fault(place(*before, "column", number), detail, "bad_name")
        elif name in seen:
            yield Fault(place(*before, "column", name), _EQUAL_NAMES, "duplicate_column")
        seen.add(name)
