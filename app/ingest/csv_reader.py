"""CSV: comma, semicolon, tab, bar or blanks, distinguished by the first rows.

The first row of the table names the columns, if it differs from the rows below it as names do. Blank lines are skipped,
but in a file of one column they are missing values. UTF-8, with or without a byte order mark; quotes as in RFC 4180, a
quote inside an unquoted field is a letter, and so are all where one that is never closed would swallow rows. Arrow
splits and converts; as its errors count from the last block, a file it refuses is read again by `diagnosis`, which
knows the lines.
"""

import csv
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from app.base.errors import InvalidData
from app.base.faults import Fault, place
from app.ingest import csv_other_dialects as others
from app.ingest.cell_patterns import Shapes
from app.ingest.column_reader import ColumnReader, decimal_mark, read_all
from app.ingest.csv_diagnosis import diagnose
from app.ingest.csv_layout import HEADER_BYTES, Layout, find_layout
from app.ingest.csv_line_numbers import lines_of
from app.ingest.csv_quote_check import QuoteCheck
from app.ingest.csv_rewriting import Rewritten, Text
from app.ingest.csv_single_pass import Mispredicted, SinglePass
from app.ingest.data_sheet_remarks import remarks
from app.ingest.notation_choice import Survey
from app.ingest.reader_result import Reading, refuse
from app.ingest.upload_options import ReadOptions
from app.ingest.uploaded_file import BOM, HEAD, Limits
from app.ml.contract.notation import bare
from app.ml.tables.csv_dialect import Dialect, detect_dialect

BLOCK = 4 << 20
"""Bytes read at a time, of a table that is not wide; a row is at most so long."""
COLUMN_BYTES = 1 << 12
"""Bytes a column in a block of a wide table: every block costs some time per column."""
NARROW = 64
"""Columns up to which Arrow reads plain strings, quicker. It sets aside the bytes of a block for each such column."""
ENCODED = pa.dictionary(pa.int32(), pa.string())
_END = "\x1f"


class _Quotes(NamedTuple):
    stray: bool
    """Some seem to be."""
    swallowing: bool
    """A value may hold rows."""


class _Refused(Exception):
    """Something is wrong somewhere: `diagnose` finds out where."""


def read(source: Text, limits: Limits, options: ReadOptions, *, dialect: Dialect | None = None) -> Reading:
    """The table of a file. dialect: that of a file whose cells are in quotes where they need them; None: detected."""
    csv.field_size_limit(BLOCK)  # for the whole process, which reads this one file
    if dialect is not None:
        return _read(source, limits, options, dialect)
    text = source.open().read(HEAD).removeprefix(BOM).decode("utf-8", "surrogateescape")
    dialect = detect_dialect(text, delimiter=options.delimiter, comment=options.comment)
    try:
        return _read(source, limits, options, dialect)
    except InvalidData as refusal:
        if not others.is_of_dialect(refusal):
            raise
        for warning, other in others.other_dialects(source, dialect):
            try:
                reading = _read(source, limits, options, other)
            except InvalidData as error:
                if others.is_of_dialect(error):
                    refusal = error if refusal.faults[0] is others.STRAY else refusal
                    continue
                raise
            return replace(reading, warnings=[warning, *(each for each in reading.warnings if each != warning)])
        raise refusal from None


def read_in_one_pass(source: Text, limits: Limits, options: ReadOptions) -> Reading:
    """The same table of a plain file, quicker. Raises Mispredicted, and so may its batches: then only `read` does."""
    csv.field_size_limit(BLOCK)
    text = source.open().read(HEAD).removeprefix(BOM).decode("utf-8", "surrogateescape")
    dialect = detect_dialect(text, delimiter=options.delimiter, comment=options.comment)
    if not dialect.plain or options.kinds:
        raise Mispredicted
    try:
        head = source.open().read(HEADER_BYTES)
        layout = find_layout(head, limits, options, dialect)
        if layout.offset == len(head) or layout.unnamed:
            raise Mispredicted
        lines = _Rows(source, layout, end=True)
        table = SinglePass(
            _readable(_closed(_batches(lines, layout, layout.names, options))),
            Survey(layout.names, options, semicolons=layout.delimiter == ";"),
            options.missing,
            lambda rows: not (lines.quotes.stray or (lines.quotes.any and lines.newlines > rows + 1)),
        )
    except InvalidData:
        raise Mispredicted from None
    return _reading(source, layout, table.readers, table.read(), frozenset())


def _read(source: Text, limits: Limits, options: ReadOptions, dialect: Dialect) -> Reading:
    """The table in this dialect. Raises InvalidData, also where quotes are stray, or swallow rows that fit without."""
    original = source
    if not dialect.plain:
        if others.has_stray_quotes(source, dialect):
            refuse([others.STRAY])
        source = Rewritten(source, dialect)
    head = source.open().read(HEADER_BYTES)
    layout = find_layout(head, limits, options, dialect)
    if layout.offset == len(head):  # nothing follows; an open quote would do that
        refuse(diagnose(source.open(), layout, longest=BLOCK) or [_no_rows(layout)])
    letters = dialect._replace(quoted=False)
    reading = read_rows(
        source,
        layout,
        limits,
        options,
        has_strays=lambda: dialect.plain and others.has_stray_quotes(original, dialect),
        reads_unquoted=lambda: dialect.quoted and others.is_regular(original, letters, dialect.quote),
    )
    warnings = [*others.unusual(dialect, options), *reading.warnings]
    return replace(reading, delimiter=dialect.delimiter, quoted=dialect.quoted, warnings=warnings)


def read_rows(
    source: Text,
    layout: Layout,
    limits: Limits,
    options: ReadOptions,
    *,
    has_strays: Callable[[], bool] = lambda: False,
    reads_unquoted: Callable[[], bool] = lambda: False,
) -> Reading:
    """The table of a plain file whose layout is known. Raises InvalidData with the line of each fault.

    has_strays: whether quotes that seem to be stray are. reads_unquoted: whether all rows have as many cells if quotes
    are letters.
    """
    try:
        readers, empty, quotes = _survey(source, layout, limits, options)
    except (pa.ArrowInvalid, _Refused):
        refuse(diagnose(source.open(), layout, longest=_block(layout)) or [_UNREADABLE])
    if quotes.stray and has_strays():
        refuse([others.STRAY])
    if quotes.swallowing and reads_unquoted():
        refuse([others.SWALLOWING])
    filled_columns = [column for column in range(len(layout.names)) if column not in empty]
    chosen = [readers[column] for column in filled_columns]
    converted = (
        read_all(chosen, [batch.column(column) for column in filled_columns])
        for batch in _batches(_Rows(source, layout), layout, layout.names, options)
    )
    return _reading(source, layout, readers, converted, empty)


def _reading(
    source: Text,
    layout: Layout,
    readers: Sequence[ColumnReader],
    batches: Iterator[Sequence[pa.Array]],
    empty: Collection[int],
) -> Reading:
    """empty: columns without a name and without values, which are left out."""
    filled_columns = [column for column in range(len(layout.names)) if column not in empty]
    return Reading(
        [layout.names[column] for column in filled_columns],
        [readers[column].type for column in filled_columns],
        batches,
        layout.warnings_without(empty),
        delimiter=layout.delimiter,
        encoding=source.encoding,
        decimal=lambda: decimal_mark(readers),
        header=layout.header,
        index=layout.index_name,
        remarks=lambda: remarks(readers, lambda rows: lines_of(source.open, layout, _block(layout), rows)),
    )


def _block(layout: Layout) -> int:
    """Bytes read at a time; a row is at most so long."""
    return max(BLOCK, COLUMN_BYTES * len(layout.names))


_UNREADABLE = Fault(
    "", f"The file is not readable as CSV, or a row is longer than {BLOCK} bytes: save it anew as UTF-8.", "unreadable"
)


def _no_rows(layout: Layout) -> Fault:
    """A fault of a file in which nothing follows the names."""
    if not any(name.strip() for name in layout.names):
        return Fault("", "The file has no rows: upload one that has some.", "no_rows")
    detail = "No row follows this line, which holds the names: if it holds values, upload the file with header=absent."
    return Fault(place("line", max(1, layout.values_line - 1)), detail, "no_rows")


def _survey(
    source: Text, layout: Layout, limits: Limits, options: ReadOptions
) -> tuple[list[ColumnReader], set[int], _Quotes]:
    """A reader of every column, the columns without a name and without values, and what the quotes seem to be.

    It takes one pass over the whole file, and one more over doubtful columns.
    """
    survey = Survey(layout.names, options, semicolons=layout.delimiter == ";")
    empty = set(layout.unnamed)
    rows = 0
    lines = _Rows(source, layout, end=True)
    for batch in _closed(_batches(lines, layout, layout.names, options)):
        rows += len(batch)
        if rows > limits.max_rows:
            raise InvalidData(f"The file has more than the {limits.max_rows} rows this service accepts.")
        survey.add(batch.columns)
        empty = {column for column in empty if bare(batch.column(column)).null_count == len(batch)}
    doubtful = {column: Shapes() for column in survey.doubtful()}
    if doubtful:
        names = [layout.names[column] for column in doubtful]
        for batch in _batches(_Rows(source, layout), layout, names, options):
            for shapes, values in zip(doubtful.values(), batch.columns, strict=True):
                shapes.add(values, tuple(options.missing))
    several = lines.quotes.any and lines.newlines > rows + 1
    swallowing = several and _holds_rows(source, layout, options)
    return survey.readers(doubtful), empty, _Quotes(lines.quotes.stray, swallowing)


def _holds_rows(source: Text, layout: Layout, options: ReadOptions) -> bool:
    """True if a value of several lines has one with as many delimiters as a row."""
    delimiters = len(layout.names) - 1
    values = (
        value
        for batch in _batches(_Rows(source, layout), layout, layout.names, options)
        for column in batch.columns
        for value in column.filter(pc.match_substring(column, "\n")).to_pylist()
    )
    return delimiters > 0 and any(
        line.count(layout.delimiter) == delimiters for value in values for line in value.split("\n")[1:-1]
    )


def _readable(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same. Raises Mispredicted where the file is not plain."""
    try:
        yield from batches
    except (pa.ArrowInvalid, _Refused):
        raise Mispredicted from None


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
    """Columns as strings; empty cells, and those that are given as missing, are null."""
    wide = len(layout.names) > NARROW
    batches = arrow_csv.open_csv(
        pa.PythonFile(rows, mode="r"),
        arrow_csv.ReadOptions(use_threads=False, block_size=_block(layout), column_names=layout.names),
        arrow_csv.ParseOptions(
            delimiter=layout.delimiter, newlines_in_values=True, ignore_empty_lines=not layout.keeps_blank_lines
        ),
        arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(layout.names, ENCODED if wide else pa.string()),
            include_columns=names,
            strings_can_be_null=True,
            null_values=["", *options.missing],
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
        self._end = f"{row}\n".encode() if end else b""
        self._last = b"\n"
        self.newlines, self.quotes = 0, QuoteCheck(layout.delimiter)
        """Number of line ends, and the quotes, so far."""

    def read(self, size: int) -> bytes:
        data = self._file.read(size)
        if not data:
            begun = self._end and self._last not in b"\r\n"
            data, self._end = (b"\n" if begun else b"") + self._end, b""
        elif b"\0" in data:
            raise _Refused
        else:
            self._last = data[-1:]
            self.newlines += data.count(b"\n")
            self.quotes.add(data)
        return data

    def close(self) -> None:
        self._file.close()
