"""CSV: comma, semicolon, tab or bar, told apart by the header and the first rows.

The first row that is not blank names the columns, and blank lines are skipped. UTF-8, with or without a byte order
mark; quotes as in RFC 4180, a quote inside an unquoted field is a letter. Arrow splits and converts; as its
errors count from the last block, a file it refuses is read again by `diagnosis`, which knows the lines.
"""

import csv
import io
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import pyarrow as pa
import pyarrow.csv as arrow_csv

from app.errors import Fault, InvalidData, place
from app.ingest.diagnosis import diagnose
from app.ingest.forms import Form, narrow, read_as
from app.ingest.options import HeaderRow, ReadOptions
from app.ingest.reading import Reading, check_names, refuse
from app.ingest.source import HEAD, Limits, Source
from app.ml.notation import MISSING

BLOCK = 4 << 20
"""Bytes read at a time, of a table that is not wide; a row is at most so long."""
COLUMN_BYTES = 1 << 12
"""Bytes a column in a block of a wide table: every block costs some time per column."""
NARROW = 64
"""Columns up to which Arrow reads plain strings, quicker. It sets aside the bytes of a block for each such column."""
ENCODED = pa.dictionary(pa.int32(), pa.string())
HEADER_BYTES = 1 << 20
DELIMITERS = ",;\t|"
BOM = b"\xef\xbb\xbf"
_END = "\x1f"


class Layout(NamedTuple):
    delimiter: str
    names: tuple[str, ...]
    offset: int
    """Bytes in front of the first row of values."""

    @property
    def block(self) -> int:
        """Bytes read at a time; a row is at most so long."""
        return max(BLOCK, COLUMN_BYTES * len(self.names))


class _Refused(Exception):
    """Something is wrong somewhere: `diagnose` finds out where."""


def read(source: Source, limits: Limits, options: ReadOptions) -> Reading:
    csv.field_size_limit(BLOCK)  # for the whole process, which reads this one file
    layout = _layout(source, limits)
    try:
        forms = _survey(source, layout, limits)
    except (pa.ArrowInvalid, _Refused):
        refuse(diagnose(source.open(), layout.delimiter, longest=layout.block) or [_UNREADABLE])
    converted = (
        [read_as(values, form) for values, form in zip(batch.columns, forms, strict=True)]
        for batch in _batches(_Rows(source, layout), layout)
    )
    return Reading(
        layout.names,
        [form.type for form in forms],
        converted,
        [] if options.header is HeaderRow.PRESENT else _doubts(layout),
        delimiter=layout.delimiter,
        encoding="utf-8",
        header=True,
    )


_ROWLESS = Fault("", "The file has no rows.", "no_rows")
_UNREADABLE = Fault("", f"The file is not readable as CSV, or a row is longer than {BLOCK} bytes.", "unreadable")


def _doubts(layout: Layout) -> list[str]:
    if narrow((Form.FLOAT, Form.TEXT), pa.array(layout.names))[0] is Form.TEXT:
        return []
    return ["The column names are numbers: the first row is always read as the names."]


def _survey(source: Source, layout: Layout, limits: Limits) -> list[Form]:
    """The first pass: every column's form, over the whole file."""
    allowed = tuple(form for form in Form if form is not Form.DECIMAL_COMMA or layout.delimiter == ";")
    possible = [allowed] * len(layout.names)
    rows = 0
    for batch in _closed(_batches(_Rows(source, layout, end=True), layout)):
        rows += len(batch)
        if rows > limits.max_rows:
            raise InvalidData(f"The file has more than the {limits.max_rows} rows this service accepts.")
        possible = [narrow(forms, values) for forms, values in zip(possible, batch.columns, strict=True)]
    return [forms[0] for forms in possible]


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


def _batches(rows: "_Rows", layout: Layout) -> Iterator[pa.RecordBatch]:
    """All columns as strings, missing tokens as null."""
    wide = len(layout.names) > NARROW
    batches = arrow_csv.open_csv(
        pa.PythonFile(rows, mode="r"),
        arrow_csv.ReadOptions(use_threads=False, block_size=layout.block, column_names=layout.names),
        arrow_csv.ParseOptions(delimiter=layout.delimiter, newlines_in_values=True),
        arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(layout.names, ENCODED if wide else pa.string()),
            strings_can_be_null=True,
            null_values=MISSING,
        ),
    )
    for batch in batches:
        yield _decoded(batch) if wide else batch


def _decoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([column.dictionary_decode() for column in batch.columns], batch.schema.names)


class _Rows:
    """The file behind its header, as pyarrow wants a file to be; at the end, if asked, a row of its own."""

    closed = False

    def __init__(self, source: Source, layout: Layout, *, end: bool = False) -> None:
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


# the header


def _layout(source: Source, limits: Limits) -> Layout:
    head = source.open().read(HEADER_BYTES)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        refuse([Fault(place("line", 1), "The file is UTF-16: save it as UTF-8.", "not_utf8")])
    text = head.removeprefix(BOM).decode("utf-8", "surrogateescape")
    delimiter = max(DELIMITERS, key=lambda d: (_agreement(text[:HEAD], d), -DELIMITERS.index(d)))
    names, behind, line = _header(text, delimiter)
    if behind == len(text):  # nothing follows; an open quote would do that
        refuse(diagnose(source.open(), delimiter, longest=BLOCK) or [_ROWLESS])
    check_names(names, limits, "line", line)
    skipped = len(text[:behind].encode("utf-8", "surrogateescape"))
    return Layout(delimiter, names, len(head) - len(head.removeprefix(BOM)) + skipped)


def _agreement(text: str, delimiter: str) -> tuple[float, int]:
    """How well the first rows split into as many fields as the header, more than one; and into how many."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows = list(islice(filter(None, reader), 100))
    whole = rows[:-1] if len(rows) > 1 else rows  # the last may be cut
    width = len(rows[0]) if rows else 0
    return (sum(len(row) == width for row in whole) / len(whole), width) if width > 1 else (0.0, 0)


def _header(text: str, delimiter: str) -> tuple[tuple[str, ...], int, int]:
    """The names, the characters up to their end, and their line."""
    lines = io.StringIO(text, newline="")
    reader = csv.reader(lines, delimiter=delimiter)
    line = 1
    for row in reader:
        if row:
            return tuple(name.strip() for name in row), lines.tell(), line
        line = reader.line_num + 1
    return (), len(text), line
