"""Parquet and Arrow IPC (file or stream): typed already, so one pass will do.

The bytes may lie about everything; batches are validated in full before anyone looks into them, and
what the lie costs ends with the process that reads it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from app.errors import InvalidData
from app.faults import Fault, place
from app.ingest.arrow_types import own_type
from app.ingest.reader_result import Reading, check_names, refuse
from app.ingest.upload_options import ReadOptions
from app.ingest.uploaded_file import Limits, Source

BATCH_ROWS = 1 << 16
BATCH_CELLS = 1 << 22
"""Cells of a batch of a wide table; Arrow holds several batches at a time."""

Batches = Iterator[pa.RecordBatch]


def read_parquet(source: Source, limits: Limits, _options: ReadOptions) -> Reading:
    with _named("Parquet"):
        file = pq.ParquetFile(source.open(), pre_buffer=False)
        rows, schema = file.metadata.num_rows, file.schema_arrow
    if rows > limits.max_rows:
        raise InvalidData(f"The file has {rows} rows; this service accepts {limits.max_rows}.")
    return _reading("Parquet", schema, lambda: file.iter_batches(_rows_of(len(schema)), use_threads=False), limits)


def read_arrow(source: Source, limits: Limits, _options: ReadOptions) -> Reading:
    with _named("Arrow IPC"):
        schema, batches = _open_ipc(source.open())
    return _reading("Arrow IPC", schema, batches, limits)


def _open_ipc(file: BinaryIO) -> tuple[pa.Schema, Callable[[], Batches]]:
    options = pa.ipc.IpcReadOptions(use_threads=False)
    if file.read(6) == b"ARROW1":
        reader = pa.ipc.open_file(file, options=options)
        return reader.schema, lambda: (reader.get_batch(number) for number in range(reader.num_record_batches))
    file.seek(0)
    stream = pa.ipc.open_stream(file, options=options)
    return stream.schema, lambda: iter(stream)


def _reading(form: str, schema: pa.Schema, batches: Callable[[], Batches], limits: Limits) -> Reading:
    check_names(schema.names, limits)
    types = [own_type(of) for of in schema.types]
    faults = [
        Fault(place("column", name), "Values of this type do not fit into a table of plain values.", "column_type")
        for name, of in zip(schema.names, types, strict=True)
        if of is None
    ]
    if faults:
        refuse(faults)
    return Reading(schema.names, [of for of in types if of is not None], _checked(form, batches))


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
        raise InvalidData(f"The file is not readable as {form}: it is damaged, or something else.") from None
