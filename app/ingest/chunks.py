"""Typed batches as chunk payloads in one file, and its columns read back one by one."""

import os
from collections.abc import Iterable, Iterator
from typing import BinaryIO

import pyarrow as pa

from app.ingest.protocol import ChunkPlace

CHUNK_ROWS = 1 << 20
COLUMN_BYTES = 1 << 12
"""A chunk holds at least so much of every column: below, most of it would be names and bookkeeping."""
_COMPRESSED = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", compression_level=1), use_threads=False)


def write_chunks(batches: Iterable[pa.RecordBatch], file: BinaryIO, chunk_bytes: int) -> Iterator[ChunkPlace]:
    """One compressed Arrow IPC stream of one batch per chunk, of `chunk_bytes` in memory, or more if wide."""
    first_row = 0
    for table in _gathered(batches, chunk_bytes):
        payload = payload_of(table)
        offset = file.tell()
        file.write(payload)
        yield ChunkPlace(first_row=first_row, rows=len(table), offset=offset, length=len(payload))
        first_row += len(table)


def _gathered(batches: Iterable[pa.RecordBatch], chunk_bytes: int) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    size = rows = 0
    for batch in batches:
        most = max(chunk_bytes, COLUMN_BYTES * batch.num_columns)
        for chunk in _slices(batch, most):
            held.append(chunk)
            size, rows = size + chunk.nbytes, rows + len(chunk)
            if size >= most or rows >= CHUNK_ROWS:
                yield pa.Table.from_batches(held)
                held, size, rows = [], 0, 0
    if rows:
        yield pa.Table.from_batches(held)


def _slices(batch: pa.RecordBatch, chunk_bytes: int) -> Iterator[pa.RecordBatch]:
    """At most a quarter of a chunk each, if rows are no longer than that."""
    count = max(1, -(-4 * batch.nbytes // chunk_bytes))
    step = max(1, -(-len(batch) // count))
    for start in range(0, len(batch), step):
        yield batch.slice(start, step)


def payload_of(table: pa.Table) -> pa.Buffer:
    """One compressed Arrow IPC stream of one batch."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_COMPRESSED) as writer:
        writer.write_table(table.combine_chunks())
    return sink.getvalue()


def read_columns(file: BinaryIO, places: Iterable[ChunkPlace], columns: list[int]) -> Iterator[pa.RecordBatch]:
    """Only the columns with these numbers are unpacked."""
    options = pa.ipc.IpcReadOptions(included_fields=columns, use_threads=False)
    for place in places:
        payload = os.pread(file.fileno(), place.length, place.offset)
        yield from pa.ipc.open_stream(payload, options=options)
