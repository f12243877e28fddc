"""Kinds and markers that an upload gives, for a table whose columns come with types of their own.

A column that has another type than its kind is written as text and read again. No notation is guessed there: numbers
are 1234.5 and dates ISO 8601 unless the kind states otherwise.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from app.base.faults import Fault, place
from app.ingest.arrow_types import plain
from app.ingest.column_reader import ColumnReader
from app.ingest.data_sheet_remarks import NOUNS, remarks
from app.ingest.notation_candidates import Way
from app.ingest.reader_result import Reading, refuse
from app.ingest.type_inference import Form
from app.ingest.upload_options import ReadOptions
from app.ml.contract.columns import ColumnKind
from app.ml.contract.dates_and_times import TIME
from app.ml.contract.given_kinds import GivenKind
from app.ml.contract.notation import Notation

_OWN = {
    ColumnKind.NUMERIC: (pa.int64(), pa.float64()),
    ColumnKind.BOOLEAN: (pa.bool_(),),
    ColumnKind.DATETIME: (TIME,),
}
"""Types that are of a kind already."""


def recast(reading: Reading, options: ReadOptions) -> Reading:
    """The table with the given kinds. Its end raises InvalidData where no value of a column is of its kind."""
    readers = {
        column: _reader(name, options)
        for column, (name, data_type) in enumerate(zip(reading.names, reading.types, strict=True))
        if _differs(data_type, options.given(name), options)
    }
    if not readers:
        return reading
    types = [readers[column].type if column in readers else data_type for column, data_type in enumerate(reading.types)]
    return replace(
        reading,
        types=types,
        batches=_read(reading.batches, readers),
        remarks=lambda: remarks(list(readers.values()), lambda rows: [row + 1 for row in rows], unit="row"),
    )


def _differs(data_type: pa.DataType, given_kind: GivenKind | None, options: ReadOptions) -> bool:
    if data_type == pa.string() and options.missing:
        return True
    return given_kind is not None and data_type not in _OWN.get(given_kind.kind, ())


def _reader(name: str, options: ReadOptions) -> ColumnReader:
    given_kind = options.given(name)
    reader = ColumnReader(name, Form.TEXT, tuple(options.missing), given=given_kind is not None)
    if given_kind is not None and given_kind.kind.measured:
        reader.way = Way(
            given_kind.kind, Notation(decimal=given_kind.decimal or ".", dates=given_kind.dates or "YMD"), 0
        )
    elif given_kind is not None:
        reader.kind = given_kind.kind
    return reader


def _read(batches: Iterator[Sequence[pa.Array]], readers: dict[int, ColumnReader]) -> Iterator[Sequence[pa.Array]]:
    for columns in batches:
        yield [
            readers[column].read(plain(values).cast(pa.string())) if column in readers else values
            for column, values in enumerate(columns)
        ]
    for reader in readers.values():
        if reader.way is not None and reader.cells == reader.misfits > 0:
            detail = f"The values of this column are no {NOUNS[reader.way.kind]}."
            refuse([Fault(place("kinds", reader.name), detail, "kind_not_found")])
