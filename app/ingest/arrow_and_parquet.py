"""Parquet and Arrow IPC (file or stream): typed already, so one pass will do.

The bytes may lie about everything; batches are validated in full before anyone looks into them, and
what the lie costs ends with the process that reads it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

import pyarrow as pa

from app.base.errors import InvalidData
from app.base.faults import Fault, place
from app.ingest.arrow_types import is_long, may_be_long, own_type
from app.ingest.data_sheet_remarks import long_numbers_remark
from app.ingest.reader_result import Reading, check_names, refuse
from app.ingest.upload_options import ReadOptions
from app.ingest.uploaded_file import Limits, Source

BATCH_ROWS = 1 << 16
BATCH_CELLS = 1 << 22
"""Cells of a batch of a wide table; Arrow holds several batches at a time."""

Batches = Iterator[pa.RecordBatch]


def read_parquet(source: Source, limits: Limits, _options: ReadOptions) -> Reading:
    from pyarrow.parquet import ParquetFile  # noqa: PLC0415  takes memory that serving does without

    with _named("Parquet"):
        file = ParquetFile(source.open(), pre_buffer=False)
        rows, schema = file.metadata.num_rows, file.schema_arrow
    if rows > limits.max_rows:
        raise InvalidData(f"The file has {rows} rows; this service accepts {limits.max_rows}.")
    return _reading("Parquet", schema, lambda: file.iter_batches(_rows_of(len(schema)), use_threads=False), limits)


def read_arrow(source: Source, limits: Limits, _options: ReadOptions) -> Reading:
    with _named("Arrow IPC"):
        schema, _ = _open_ipc(source.open())
    return _reading("Arrow IPC", schema, lambda: _open_ipc(source.open())[1], limits)


def _open_ipc(file: BinaryIO) -> tuple[pa.Schema, Batches]:
    options = pa.ipc.IpcReadOptions(use_threads=False)
    if file.read(6) == b"ARROW1":
        reader = pa.ipc.open_file(file, options=options)
        return reader.schema, (reader.get_batch(number) for number in range(reader.num_record_batches))
    file.seek(0)
    stream = pa.ipc.open_stream(file, options=options)
    return stream.schema, iter(stream)


def _reading(form: str, schema: pa.Schema, batches: Callable[[], Batches], limits: Limits) -> Reading:
    check_names(schema.names, limits)
    types = [own_type(data_type) for data_type in schema.types]
    faults = [
        Fault(place("column", name), _no_plain_values(field.type), "column_type")
        for name, field, data_type in zip(schema.names, schema, types, strict=True)
        if data_type is None
    ]
    if faults:
        refuse(faults)
    long_numbers = _long_numbers(form, schema, batches)
    return Reading(
        schema.names,
        [
            pa.string() if name in long_numbers else data_type
            for name, data_type in zip(schema.names, types, strict=True)
            if data_type
        ],
        _checked(form, batches),
        remarks=lambda: {name: long_numbers_remark(name) for name in long_numbers},
    )


def _long_numbers(form: str, schema: pa.Schema, batches: Callable[[], Batches]) -> set[str]:
    """Columns with whole numbers beyond 64 bits, from a pass of its own where a type allows them."""
    numbers = [number for number, data_type in enumerate(schema.types) if may_be_long(data_type)]
    if not numbers:
        return set()
    return {
        schema.names[number] for columns in _checked(form, batches) for number in numbers if is_long(columns[number])
    }


def _no_plain_values(data_type: pa.DataType) -> str:
    """A sentence on a type that does not fit into a table, with a remedy."""
    is_ = pa.types
    if is_.is_struct(data_type):
        return f"The column holds records ({data_type}): write each field as a column of its own."
    if (
        is_.is_list(data_type)
        or is_.is_large_list(data_type)
        or is_.is_fixed_size_list(data_type)
        or is_.is_map(data_type)
    ):
        return f"The column holds lists ({data_type}): write each element as a column, or as a row, of its own."
    return f"The column holds values of the type {data_type}: write them as numbers, text or times."


def _checked(form: str, batches: Callable[[], Batches]) -> Iterator[list[pa.Array]]:
    source = batches()
    while True:
        with _named(form):
            batch = next(source, None)
            if batch is None:
                return
            batch.validate(full=True)
        step = _rows_of(batch.num_columns)
        for start in range(0, len(batch), step):
            yield batch.slice(start, step).columns


def _rows_of(columns: int) -> int:
    """Rows of one batch."""
    return max(1, min(BATCH_ROWS, BATCH_CELLS // max(1, columns)))


@contextmanager
def _named(form: str) -> Iterator[None]:
    """Arrow's messages quote what they read: report only what it was not."""
    try:
        yield
    except MemoryError:
        raise
    except (pa.ArrowException, OSError, ValueError, UnicodeError, TypeError, KeyError):
        raise InvalidData(
            f"The file is not readable as {form}: it is damaged, or something else. Write it anew, and upload it whole."
        ) from None
