"""Tables of pandas, polars, pyarrow and others, by the Arrow C stream, as bytes and back.

Only pyarrow packs and unpacks them. None of these packages is imported unless a table is used.
"""

import io
import math
import sys
from collections.abc import Iterator, Mapping
from typing import Any

ARROW, NPY, JSON = "application/vnd.apache.arrow.stream", "application/x-npy", "application/json"
BODIES = {"rows"}, {"columns", "data"}
"""Fields of a request that has rows."""
MISSING = {"NAType", "NaTType"}
"""Types of pandas' missing values, beside NaN."""
BATCH_ROWS = 50_000
BATCH_CELLS = 2_000_000
"""Rows and cells of one request to predict: well below what a service accepts by default."""


def is_frame(value: Any) -> bool:
    return hasattr(value, "__arrow_c_stream__") and not _is_series(value)


def is_array(value: Any) -> bool:
    """True for an array of numpy, which exists only where numpy was imported."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def table_of(frame: Any) -> Any:
    """The table as pyarrow has it, with types that the service reads. An index of pandas is left out."""
    pa = _pyarrow()
    if _package(frame) == "pandas":
        frame = frame.reset_index(drop=True)
    table = pa.table(frame)
    return pa.table([_readable(column) for column in table.columns], names=table.column_names)


def _readable(column: Any) -> Any:
    """Views of text, as polars has them, are plain text to the service."""
    pa = _pyarrow()
    if pa.types.is_string_view(column.type):
        return column.cast(pa.large_string())
    if pa.types.is_dictionary(column.type) and pa.types.is_string_view(column.type.value_type):
        parts = [(chunk.indices, chunk.dictionary.cast(pa.large_string())) for chunk in column.chunks]
        kind = pa.dictionary(column.type.index_type, pa.large_string())
        return pa.chunked_array([pa.DictionaryArray.from_arrays(*part) for part in parts], kind)
    return column


def packed(table: Any) -> Iterator[bytes]:
    """An Arrow stream without compression, batch by batch."""
    pa, sink = _pyarrow(), io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        for batch in table.to_batches(max_chunksize=BATCH_ROWS):
            writer.write_batch(batch)
            yield sink.getvalue()
            sink.seek(0)
            sink.truncate()
    yield sink.getvalue()


def batches(table: Any) -> Iterator[Any]:
    """Parts of a table, each for one request; at least one, so that the service can refuse a table without rows."""
    rows = max(1, min(BATCH_ROWS, BATCH_CELLS // max(1, table.num_columns)))
    for start in range(0, max(1, table.num_rows), rows):
        yield table.slice(start, rows)


def unpacked(content: bytes) -> Any:
    return _pyarrow().ipc.open_stream(content).read_all()


def joined(tables: list[Any]) -> Any:
    return _pyarrow().concat_tables(tables)


def like(frame: Any, table: Any) -> Any:
    """The table as the same kind of frame, of pandas with the same index if it has as many rows."""
    match _package(frame):
        case "pandas":
            pandas = table.to_pandas()
            return pandas.set_axis(frame.index) if len(pandas) == len(frame) else pandas
        case "polars":
            return sys.modules["polars"].from_arrow(table)
    return table


def restored(frame: Any, table: Any) -> Any:
    """A downloaded table with the types of the frame that was uploaded, as the same kind of frame.

    The service keeps numbers as float64, categories as text and dates as times: what has the same values here gets
    back the type that the frame has.
    """
    schema = _pyarrow().table(frame.reset_index(drop=True) if _package(frame) == "pandas" else frame)
    columns = [_typed(table[name], schema[name]) for name in table.column_names]
    made = _pyarrow().table(columns, names=table.column_names).replace_schema_metadata(schema.schema.metadata)
    typed = like(frame, made)
    return typed.cast(frame.schema) if _package(frame) == "polars" else typed


def _typed(column: Any, example: Any) -> Any:
    pa = _pyarrow()
    if not pa.types.is_dictionary(example.type):
        return column.cast(example.type)
    import pyarrow.compute as pc  # noqa: PLC0415

    categories = example.combine_chunks().dictionary
    texts, known_texts = (each.cast(pa.large_string()) for each in (column.combine_chunks(), categories))
    places = pc.index_in(texts, value_set=known_texts).cast(example.type.index_type)
    return pa.DictionaryArray.from_arrays(places, categories, ordered=example.type.ordered)


def npy(array: Any) -> bytes:
    sink = io.BytesIO()
    sys.modules["numpy"].save(sink, array, allow_pickle=False)
    return sink.getvalue()


def array(values: list[Any]) -> Any:
    return sys.modules["numpy"].asarray(values)


def rows_of(rows: Any) -> Any:
    """Rows in a JSON request: of a table, a list of objects or series, one of them, or a body that has all fields."""
    if is_frame(rows):
        table = table_of(rows)
        columns = ([_cell(cell) for cell in column.to_pylist()] for column in table.columns)
        return {"columns": table.column_names, "data": list(zip(*columns, strict=True))}
    if isinstance(rows, (list, tuple)):
        return {"rows": [_row(row) for row in rows]}
    is_body = isinstance(rows, Mapping) and set(rows) in BODIES and all(isinstance(rows[name], list) for name in rows)
    return rows if is_body else {"rows": [_row(rows)]}


def _row(row: Any) -> Any:
    """One row as an object; what is none, the service refuses by its place."""
    if _is_series(row):
        row = row.to_dict()
    return {name: _cell(cell) for name, cell in row.items()} if isinstance(row, Mapping) else row


def _cell(cell: Any) -> Any:
    """None for each of the values that stand for a missing one: NaN, NA and NaT."""
    is_missing = type(cell).__name__ in MISSING or (isinstance(cell, float) and math.isnan(cell))
    return None if is_missing else cell


def _is_series(value: Any) -> bool:
    """True for a row of pandas, which is a table to Arrow."""
    return _package(value) == "pandas" and type(value).__name__ == "Series"


def _package(frame: Any) -> str:
    return type(frame).__module__.partition(".")[0]


def _pyarrow() -> Any:
    import pyarrow as pa  # noqa: PLC0415  slow to import

    return pa
