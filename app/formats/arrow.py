"""Predictions as Arrow streams: rows as a column for each input, or one column whose lists are whole rows; responses.

The bytes of a request may lie about everything. They are read in place: compressed buffers and parts of dictionaries
are refused before they are unpacked; values that are written out are counted first. Numbers of a model of numbers go
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

from app.base.errors import BodyTooLarge, InvalidData
from app.base.faults import Fault, place
from app.formats.arrow_messages import refuse_unpacking
from app.formats.bytes import Sent
from app.formats.contribution_fields import contribution_columns
from app.formats.malformed import MalformedTable
from app.formats.npy import matrix_rows, takes_matrix
from app.formats.prediction import (
    NO_EXTRAS,
    Extras,
    Version,
    WrittenPrediction,
    decided,
    intervals,
    names_of,
    numbers_of,
    outputs_of,
)
from app.ml.contract.algorithm import Matrix
from app.ml.models.model import Model, Predicted
from app.ml.tables.rows import MAX_FAULTS, Incoming, read_rows, whole

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


def arrow_rows(body: Sent, model: Model, *, max_rows: int, max_bytes: int, let_bad_rows_pass: bool) -> Incoming:
    """The rows of a stream; NaN and null are missing. `max_bytes`: of a body, and of the table written out.

    Raises MalformedTable, BodyTooLarge, InvalidData.
    """
    table, names = _table(body, max_rows), [column.name for column in model.inputs]
    _demand_size(table.num_rows * len(names), max_bytes)
    lists = _lists(table, len(names))
    if lists is not None and takes_matrix(model):
        return matrix_rows(lists, model, max_rows=max_rows, let_bad_rows_pass=let_bad_rows_pass)
    _refuse_twice(table.column_names)
    requested = table.select([name for name in names if name in table.column_names])
    _demand_types(requested)
    _demand_size(sum(map(_text_bytes, requested.columns)) // 2, max_bytes)
    raw = matrix_of(requested) if requested.column_names == list(model.preparation.numbers or ()) else None
    if raw is not None:
        incoming = whole(raw)
    else:
        rows = {"rows": _documents(requested)}
        incoming = read_rows(rows, model.inputs, max_rows=max_rows, let_bad_rows_pass=let_bad_rows_pass)
    expected_names = set(names)
    return incoming._replace(ignored=[name for name in table.column_names if name not in expected_names])


def _table(body: Sent, max_rows: int) -> pa.Table:
    """The columns as views of the body, validated in full. Raises MalformedTable, BodyTooLarge."""
    with _named():
        source = pa.BufferReader(body)
        for count, message in enumerate(pa.ipc.MessageReader.open_stream(source)):
            if count > MOST_BATCHES:
                raise MalformedTable(f"At most {MOST_BATCHES} messages are read.")
            refuse_unpacking(message)
        if source.tell() != len(body):
            raise MalformedTable("Bytes follow the end of the stream.")
        stream = pa.ipc.open_stream(body, options=pa.ipc.IpcReadOptions(use_threads=False))
        batches, rows = [], 0
        for batch in stream:
            rows += batch.num_rows
            if rows > max_rows:
                raise BodyTooLarge(f"There are more rows than one request may carry: {max_rows}.")
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


def _demand_size(cells: int, max_bytes: int) -> None:
    """Columns may all be views of the same bytes, or of none. Raises BodyTooLarge beyond what JSON could carry."""
    if cells > max_bytes // 2:
        raise BodyTooLarge("The table, written out, is larger than a body may be.")


def _lists(table: pa.Table, width: int) -> NDArray[Any] | None:
    """(n, width) of a table whose only column has lists of so many numbers; None for any other."""
    kinds = table.schema.types
    if len(kinds) != 1 or not pa.types.is_fixed_size_list(kinds[0]) or kinds[0].list_size != width:
        return None
    data_type, column = kinds[0].value_type, table.column(0)
    if column.null_count or not (pa.types.is_integer(data_type) or pa.types.is_floating(data_type)):
        return None
    cells = pa.chunked_array([chunk.flatten() for chunk in column.chunks], data_type).combine_chunks()
    if cells.null_count and pa.types.is_integer(data_type):
        return None
    floats = cells.cast(pa.float64()) if pa.types.is_floating(data_type) else cells
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
        if not any(is_type(_value_type(field.type)) for is_type in (*READ, *TEXTS))
    ]
    if faults:
        raise InvalidData(faults=faults[:MAX_FAULTS])


def _value_type(kind: pa.DataType) -> pa.DataType:
    """Type of the values of a dictionary of texts: text; a dictionary of anything else is not read."""
    packed = pa.types.is_dictionary(kind) and any(is_text(kind.value_type) for is_text in TEXTS)
    return kind.value_type if packed else kind


def _text_bytes(column: pa.ChunkedArray) -> int:
    """Bytes of all its texts, each written out."""
    if not any(is_text(_value_type(column.type)) for is_text in TEXTS):
        return 0
    return sum(pc.sum(_lengths(chunk)).as_py() or 0 for chunk in column.chunks)


def _lengths(chunk: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(chunk.type):
        return pc.binary_length(chunk.dictionary).cast(pa.int64()).take(chunk.indices)
    return pc.binary_length(chunk).cast(pa.int64())


def matrix_of(table: pa.Table) -> Matrix | None:
    """The raw matrix (n, p) of columns of numbers; None where there is any doubt."""
    if not table.num_rows or not all(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in table.schema.types
    ):
        return None
    raw = np.empty((table.num_rows, table.num_columns))
    try:
        for index, column in enumerate(table.columns):
            raw[:, index] = column.cast(pa.float64()).to_numpy()  # refuses whole numbers that float64 would round
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
    """The times as texts in ISO 8601, in UTC; a time without a zone is taken to be."""
    try:
        if pa.types.is_date(column.type) or column.type.tz is None:
            return column.cast(MICROSECONDS).cast(pa.string())
        return column.cast(pa.timestamp("us", "UTC")).cast(pa.int64()).cast(MICROSECONDS).cast(pa.string())
    except ValueError:  # Arrow's, or that of a zone whose name is no UTF-8
        raise InvalidData(
            faults=[Fault(place("columns", name), "Times are read to the microsecond.", "column_type")]
        ) from None


def as_arrow(
    version: Version, model: Model, incoming: Incoming, predicted: Predicted | None, extras: Extras = NO_EXTRAS
) -> WrittenPrediction:
    """A row for each row sent: `prediction`, a `probability_…` for each class, and `flags`.

    `name`, where a person has named clusters: that of the cluster, null where it has none.

    On request: `lower` and `upper`, infinite where nothing bounds the prediction, outputs, `contribution_base`,
    `contribution_raw` and a `contribution_of_…` for each column, `reasons`, and `decision`. A flag is its code, and the
    column after a colon. Bad rows are null, their flag is the code of the fault.
    """
    decisions: list[str] = []
    if extras.policy is not None and predicted is not None:
        predicted, decisions = decided(predicted, extras.policy)
    columns = {"prediction": _predictions(model, predicted)}
    if version.names:
        columns["name"] = pa.array(names_of(version, predicted), pa.string())
    if extras.confidence is not None:
        columns |= zip(("lower", "upper"), map(pa.array, intervals(predicted).T), strict=True)
    if model.classes is not None:
        names = [f"probability_{label}" for label in model.classes]
        columns |= zip(names, map(pa.array, numbers_of(model, predicted).T), strict=True)
    columns |= {name: _column(values) for name, values in outputs_of(model, predicted, extras)}
    if extras.explains:
        columns |= contribution_columns(incoming, predicted, extras)
    if extras.policy is not None:
        columns["decision"] = pa.array(decisions, pa.string())
    columns = {name: _placed(incoming, values) for name, values in columns.items()}
    columns["flags"] = _flags(incoming, predicted)
    metadata = {
        "model": version.model,
        "version": str(version.version),
        "digest": version.digest,
        "task": model.task.value,
    }
    table = pa.table(columns).replace_schema_metadata(metadata)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return WrittenPrediction(sink.getvalue().to_pybytes(), version.version, incoming.ignored, incoming.rows)


def _predictions(model: Model, predicted: Predicted | None) -> pa.Array:
    """Predictions of the good rows, as in `Predicted.predictions`."""
    if model.classes is not None:
        return pa.array(model.classes).take(pa.array(np.zeros(0, np.intp))) if predicted is None else predicted.labels
    return _column(np.zeros(0) if predicted is None else np.ascontiguousarray(predicted.values))


def _column(values: NDArray[Any]) -> pa.Array:
    """A column of (n,) numbers, or of (n, k) as lists."""
    if values.ndim == 1:
        return pa.array(values)
    ends = np.arange(len(values) + 1, dtype=np.int32) * np.int32(values.shape[1])
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(values.ravel()))


def _placed(incoming: Incoming, values: pa.Array) -> pa.Array:
    """The flags of the good rows, null elsewhere."""
    if len(values) == incoming.rows:
        return values
    places, bad = np.zeros(incoming.rows, np.intp), np.ones(incoming.rows, np.bool_)
    places[incoming.good], bad[incoming.good] = np.arange(len(values)), False
    return values.take(pa.array(places, mask=bad))


def _flags(incoming: Incoming, predicted: Predicted | None) -> pa.Array:
    """A list of texts for each row."""
    messages = [(flag.text, incoming.good[flag.rows]) for flag in (predicted.flags if predicted else ())]
    messages += [(fault.code, np.array([int(fault.pointer.split("/")[2])])) for fault in incoming.faults]
    rows = np.concatenate([np.zeros(0, np.intp), *(rows for _, rows in messages)])
    which = np.repeat(np.arange(len(messages)), [rows.size for _, rows in messages])
    ends = np.append(0, np.bincount(rows, minlength=incoming.rows).cumsum()).astype(np.int32)
    texts = pa.array([text for text, _ in messages], pa.string()).take(pa.array(which[rows.argsort(kind="stable")]))
    return pa.ListArray.from_arrays(pa.array(ends), texts)
