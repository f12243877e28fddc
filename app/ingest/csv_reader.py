"""CSV: comma, semicolon, tab or bar, distinguished by the header and the first rows.

The first row that is not blank names the columns, and blank lines are skipped. UTF-8, with or without a byte order
mark; quotes as in RFC 4180, a quote inside an unquoted field is a letter. Arrow splits and converts; as its
errors count from the last block, a file it refuses is read again by `diagnosis`, which knows the lines.
"""

import csv
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Protocol

import pyarrow as pa
import pyarrow.csv as arrow_csv

from app.errors import InvalidData
from app.faults import Fault
from app.ingest.cell_patterns import Shapes
from app.ingest.column_reader import ColumnReader, read_all
from app.ingest.csv_diagnosis import diagnose
from app.ingest.csv_layout import DELIMITERS, HEADER_BYTES, Layout, find_layout
from app.ingest.csv_line_numbers import lines_of
from app.ingest.data_sheet_remarks import remarks
from app.ingest.notation_choice import Survey
from app.ingest.reader_result import Reading, refuse
from app.ingest.upload_options import ReadOptions
from app.ingest.uploaded_file import Limits
from app.ml.contract.missing_markers import MISSING

BLOCK = 4 << 20
"""Bytes read at a time, of a table that is not wide; a row is at most so long."""
COLUMN_BYTES = 1 << 12
"""Bytes a column in a block of a wide table: every block costs some time per column."""
NARROW = 64
"""Columns up to which Arrow reads plain strings, quicker. It sets aside the bytes of a block for each such column."""
ENCODED = pa.dictionary(pa.int32(), pa.string())
_END = "\x1f"


class Text(Protocol):
    """A text that can be read several times, as UTF-8."""

    @property
    def encoding(self) -> str:
        """Encoding of the file."""

    def open(self) -> BinaryIO:
        """From the start."""


class _Refused(Exception):
    """Something is wrong somewhere: `diagnose` finds out where."""


def read(source: Text, limits: Limits, options: ReadOptions, *, delimiters: str = DELIMITERS) -> Reading:
    csv.field_size_limit(BLOCK)  # for the whole process, which reads this one file
    head = source.open().read(HEADER_BYTES)
    layout = find_layout(head, limits, options, delimiters)
    if layout.offset == len(head):  # nothing follows; an open quote would do that
        refuse(diagnose(source.open(), layout, longest=BLOCK) or [_ROWLESS])
    try:
        readers, empty = _survey(source, layout, limits, options)
    except (pa.ArrowInvalid, _Refused):
        refuse(diagnose(source.open(), layout, longest=_block(layout)) or [_UNREADABLE])
    kept = [at for at in range(len(layout.names)) if at not in empty]
    chosen = [readers[at] for at in kept]
    converted = (
        read_all(chosen, [batch.column(at) for at in kept])
        for batch in _batches(_Rows(source, layout), layout, layout.names, options)
    )
    return Reading(
        [layout.names[at] for at in kept],
        [readers[at].type for at in kept],
        converted,
        layout.warnings_without(empty),
        delimiter=layout.delimiter,
        encoding=source.encoding,
        header=layout.header,
        index=layout.index_name,
        remarks=lambda: remarks(readers, lambda rows: lines_of(source.open, layout, _block(layout), rows)),
    )


def _block(layout: Layout) -> int:
    """Bytes read at a time; a row is at most so long."""
    return max(BLOCK, COLUMN_BYTES * len(layout.names))


_ROWLESS = Fault("", "The file has no rows.", "no_rows")
_UNREADABLE = Fault("", f"The file is not readable as CSV, or a row is longer than {BLOCK} bytes.", "unreadable")


def _survey(source: Text, layout: Layout, limits: Limits, options: ReadOptions) -> tuple[list[ColumnReader], set[int]]:
    """A reader of every column, and the columns without a name and without values.

    It takes one pass over the whole file, and one more over doubtful columns.
    """
    survey = Survey(layout.names, options, semicolons=layout.delimiter == ";")
    empty = set(layout.unnamed)
    rows = 0
    for batch in _closed(_batches(_Rows(source, layout, end=True), layout, layout.names, options)):
        rows += len(batch)
        if rows > limits.max_rows:
            raise InvalidData(f"The file has more than the {limits.max_rows} rows this service accepts.")
        survey.add(batch.columns)
        empty = {at for at in empty if batch.column(at).null_count == len(batch)}
    doubtful = {at: Shapes() for at in survey.doubtful()}
    if doubtful:
        names = [layout.names[at] for at in doubtful]
        for batch in _batches(_Rows(source, layout), layout, names, options):
            for shapes, values in zip(doubtful.values(), batch.columns, strict=True):
                shapes.add(values, tuple(options.missing))
    return survey.readers(doubtful), empty


def _closed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Without the end row, which must stand by itself: an open quote would have swallowed it."""
    last: pa.RecordBatch | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        if last is not None:
            yield last
        last = batch
    if last is None or any(column[-1].as_py() != _END for column in last.columns):
        raise _Refused
    yield last[:-1]


def _batches(rows: "_Rows", layout: Layout, names: Sequence[str], options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """Columns as strings, missing tokens as null."""
    wide = len(layout.names) > NARROW
    batches = arrow_csv.open_csv(
        pa.PythonFile(rows, mode="r"),
        arrow_csv.ReadOptions(use_threads=False, block_size=_block(layout), column_names=layout.names),
        arrow_csv.ParseOptions(delimiter=layout.delimiter, newlines_in_values=True),
        arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(layout.names, ENCODED if wide else pa.string()),
            include_columns=names,
            strings_can_be_null=True,
            null_values=[*MISSING, *options.missing],
        ),
    )
    for batch in batches:
        yield _decoded(batch) if wide else batch


def _decoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([column.dictionary_decode() for column in batch.columns], batch.schema.names)


class _Rows:
    """The file behind its header, as pyarrow expects a file to be; at the end, if requested, a row of its own."""

    closed = False

    def __init__(self, source: Text, layout: Layout, *, end: bool = False) -> None:
        self._file = source.open()
        self._file.read(layout.offset)
        row = layout.delimiter.join([_END] * len(layout.names))
        self._end = f"\n{row}\n".encode() if end else b""

    def read(self, size: int) -> bytes:
        data = self._file.read(size)
        if not data:
            data, self._end = self._end, b""
        elif b"\0" in data:
            raise _Refused
        return data

    def close(self) -> None:
        self._file.close()
