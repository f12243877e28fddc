"""Rows that come as an Arrow stream: a column for each input, by name, or one column whose lists are whole rows.

The bytes may lie about everything. They are read where they lie: what would be unpacked (compressed buffers, parts of
dictionaries) is refused before it is, and what is written out is counted first. Numbers of a model of numbers go
straight into its matrix; anything else becomes the rows that JSON would be, and is validated as they are.
"""

import struct
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from app.api.edge.body import Sent
from app.api.edge.negotiation import MalformedTable, Read, matrix_rows
from app.errors import BodyTooLarge, Fault, InvalidData, place
from app.ml.contract.algorithm import Matrix
from app.ml.tables.rows import MAX_FAULTS, Incoming, whole
from app.services.predictions import Served
from app.settings import Settings

MOST_BATCHES = 10_000
MICROSECONDS = pa.timestamp("us")
READ: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_boolean,
    pa.types.is_null,
    pa.types.is_timestamp,
    pa.types.is_date,
)
TEXTS: tuple[Callable[[pa.DataType], bool], ...] = (pa.types.is_string, pa.types.is_large_string)
HEADER, COMPRESSION, DATA, IS_DELTA = 2, 3, 1, 2
"""Places of fields in the tables Message, RecordBatch and DictionaryBatch of Arrow's Message.fbs."""


def arrow_rows(body: Sent, served: Served, read: Read, settings: Settings, *, let_bad_rows_pass: bool) -> Incoming:
    """The rows of a stream; NaN and null are missing. `read`: the general reader.

    Raises MalformedTable, BodyTooLarge, InvalidData.
    """
    table, names = _table(body, settings), [column.name for column in served.model.inputs]
    _demand_size(table.num_rows * len(names), settings)
    lists = _lists(table, len(names))
    if lists is not None and served.model.preparation.numbers is not None:
        return matrix_rows(lists, served, read, let_bad_rows_pass=let_bad_rows_pass)
    _refuse_twice(table.column_names)
    requested = table.select([name for name in names if name in table.column_names])
    _demand_types(requested)
    _demand_size(sum(map(_text_bytes, requested.columns)) // 2, settings)
    raw = matrix_of(requested) if requested.column_names == list(served.model.preparation.numbers or ()) else None
    incoming = read({"rows": _documents(requested)}) if raw is None else whole(raw)
    known = set(names)
    return incoming._replace(ignored=[name for name in table.column_names if name not in known])


def _table(body: Sent, settings: Settings) -> pa.Table:
    """The columns as views of the body, validated in full. Raises MalformedTable, BodyTooLarge."""
    with _named():
        source = pa.BufferReader(body)
        for count, message in enumerate(pa.ipc.MessageReader.open_stream(source)):
            if count > MOST_BATCHES:
                raise MalformedTable(f"At most {MOST_BATCHES} messages are read.")
            _refuse_unpacking(message)
        if source.tell() != len(body):
            raise MalformedTable("Bytes follow the end of the stream.")
        stream = pa.ipc.open_stream(body, options=pa.ipc.IpcReadOptions(use_threads=False))
        batches, rows = [], 0
        for batch in stream:
            rows += batch.num_rows
            if rows > settings.max_predict_rows:
                raise BodyTooLarge(f"There are more rows than one request may carry: {settings.max_predict_rows}.")
            batch.validate(full=True)
            batches.append(batch)
        table = pa.Table.from_batches(batches, stream.schema)
        _ = table.column_names  # it may be no UTF-8
        return table


@contextmanager
def _named() -> Iterator[None]:
    """Arrow's complaints quote what they read."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, TypeError, LookupError, struct.error):
        raise MalformedTable("The body is not readable as an Arrow stream: it is damaged, or something else.") from None


def _refuse_unpacking(message: pa.Message) -> None:
    """Raises MalformedTable for what takes memory beyond the body."""
    if message.type not in {"record batch", "dictionary"}:
        return
    text = memoryview(message.metadata)
    header = _table_at(text, _field(text, _table_at(text, 0), HEADER))
    if message.type == "dictionary":
        flag = _field(text, header, IS_DELTA)
        if flag and text[flag]:
            raise MalformedTable("Dictionaries in several batches are not read; send each of them whole.")
        header = _table_at(text, _field(text, header, DATA))
    if _field(text, header, COMPRESSION):
        raise MalformedTable("Compressed buffers are not read; send them as they are.")


def _table_at(text: memoryview, at: int) -> int:
    """Where the table begins that a flatbuffer refers to from here."""
    return at + int(struct.unpack_from("<I", text, at)[0])


def _field(text: memoryview, table: int, number: int) -> int:
    """Where a field of a flatbuffer's table is; 0 if it is left out."""
    entries = table - int(struct.unpack_from("<i", text, table)[0])
    size, at = int(struct.unpack_from("<H", text, entries)[0]), 4 + 2 * number
    offset = int(struct.unpack_from("<H", text, entries + at)[0]) if at < size else 0
    return table + offset if offset else 0


def _demand_size(cells: int, settings: Settings) -> None:
    """Columns may all be views of the same bytes, or of none. Raises BodyTooLarge beyond what JSON could carry."""
    if cells > settings.max_body_bytes // 2:
        raise BodyTooLarge("The table, written out, is larger than a body may be.")


def _lists(table: pa.Table, width: int) -> NDArray[Any] | None:
    """(n, width) of a table whose only column has lists of so many numbers; None for any other."""
    kinds = table.schema.types
    if len(kinds) != 1 or not pa.types.is_fixed_size_list(kinds[0]) or kinds[0].list_size != width:
        return None
    of, column = kinds[0].value_type, table.column(0)
    if column.null_count or not (pa.types.is_integer(of) or pa.types.is_floating(of)):
        return None
    cells = pa.chunked_array([chunk.flatten() for chunk in column.chunks], of).combine_chunks()
    if cells.null_count and pa.types.is_integer(of):
        return None
    floats = cells.cast(pa.float64()) if pa.types.is_floating(of) else cells
    values: NDArray[Any] = floats.to_numpy(zero_copy_only=False)
    return values.reshape(-1, width)


def _refuse_twice(names: Sequence[str]) -> None:
    twice = {name for name, count in Counter(names).items() if count > 1}
    faults = [
        Fault(place("columns", name), "Another column has the same name.", "duplicate_column") for name in sorted(twice)
    ]
    if faults:
        raise InvalidData("The names of columns are not unique.", faults=faults[:MAX_FAULTS])


def _demand_types(table: pa.Table) -> None:
    faults = [
        Fault(place("columns", field.name), "Values of this type are no plain values.", "column_type")
        for field in table.schema
        if not any(of(_value_type(field.type)) for of in (*READ, *TEXTS))
    ]
    if faults:
        raise InvalidData(faults=faults[:MAX_FAULTS])


def _value_type(kind: pa.DataType) -> pa.DataType:
    """Of a dictionary of texts: text; a dictionary of anything else is not read."""
    packed = pa.types.is_dictionary(kind) and any(of(kind.value_type) for of in TEXTS)
    return kind.value_type if packed else kind


def _text_bytes(column: pa.ChunkedArray) -> int:
    """Of all its texts, each written out."""
    if not any(of(_value_type(column.type)) for of in TEXTS):
        return 0
    return sum(pc.sum(_lengths(chunk)).as_py() or 0 for chunk in column.chunks)


def _lengths(chunk: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(chunk.type):
        return pc.binary_length(chunk.dictionary).cast(pa.int64()).take(chunk.indices)
    return pc.binary_length(chunk).cast(pa.int64())


def matrix_of(table: pa.Table) -> Matrix | None:
    """The raw matrix (n, p) of columns of numbers; None where there is any doubt."""
    if not table.num_rows or not all(pa.types.is_integer(of) or pa.types.is_floating(of) for of in table.schema.types):
        return None
    raw = np.empty((table.num_rows, table.num_columns))
    try:
        for at, column in enumerate(table.columns):
            raw[:, at] = column.cast(pa.float64()).to_numpy()  # refuses whole numbers that float64 would round
    except pa.ArrowInvalid:
        return None
    return None if np.isinf(raw).any() else raw


def _documents(table: pa.Table) -> list[dict[str, Any]]:
    """The rows as JSON has them."""
    if not table.num_columns:
        return [{} for _ in range(table.num_rows)]
    columns = [_cells(column, name) for name, column in zip(table.column_names, table.columns, strict=True)]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _cells(column: pa.ChunkedArray, name: str) -> list[Any]:
    if pa.types.is_dictionary(column.type):
        column = pa.chunked_array([chunk.dictionary_decode() for chunk in column.chunks], column.type.value_type)
    elif pa.types.is_floating(column.type):
        return [None if x != x else x for x in column.cast(pa.float64()).to_pylist()]  # noqa: PLR0124  NaN
    elif pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        column = _moments(column, name)
    cells: list[Any] = column.to_pylist()
    return cells


def _moments(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """As texts in ISO 8601, in UTC; a time without a zone is taken to be."""
    try:
        if pa.types.is_date(column.type) or column.type.tz is None:
            return column.cast(MICROSECONDS).cast(pa.string())
        return column.cast(pa.timestamp("us", "UTC")).cast(pa.int64()).cast(MICROSECONDS).cast(pa.string())
    except ValueError:  # Arrow's, or that of a zone whose name is no UTF-8
        raise InvalidData(
            faults=[Fault(place("columns", name), "Times are read to the microsecond.", "column_type")]
        ) from None
