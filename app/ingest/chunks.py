"""Typed batches as chunk payloads in one file, and its columns read back one by one."""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

import pyarrow as pa

from app.ingest.protocol import ChunkPlace

CHUNK_ROWS = 1 << 20
COLUMN_BYTES = 1 << 12
"""A chunk holds at least so much of every column: below, most of it would be names and bookkeeping."""
HELD_BYTES = 64 << 20
"""Limit on the tables in memory behind their chunks, which saves reading them again."""
_COMPRESSED = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", compression_level=1), use_threads=False)


class ChunkFile:
    """A file of chunks, whose tables stay in memory while they are small."""

    def __init__(self, file: BinaryIO) -> None:
        self.places: list[ChunkPlace] = []
        self._file = file
        self._held: list[pa.Table] | None = []
        self._held_bytes = 0

    def write(self, batches: Iterable[pa.RecordBatch], chunk_bytes: int) -> None:
        """One compressed Arrow IPC stream of one batch per chunk, of `chunk_bytes` in memory, or more if wide.

        The file is emptied first.
        """
        self._file.seek(0)
        self._file.truncate()
        first_row = 0
        for table in map(pa.Table.combine_chunks, _gathered(batches, chunk_bytes)):
            payload = payload_of(table)
            offset = self._file.tell()
            self._file.write(payload)
            self.places.append(ChunkPlace(first_row=first_row, rows=len(table), offset=offset, length=len(payload)))
            first_row += len(table)
            self._hold(table)
        self._file.flush()

    def _hold(self, table: pa.Table) -> None:
        self._held_bytes += table.nbytes
        if self._held_bytes > HELD_BYTES:
            self._held = None
        if self._held is not None:
            self._held.append(table)

    def read(self, columns: list[int], numbers: Sequence[int] | None = None) -> Iterator[pa.RecordBatch]:
        """These columns of every chunk; numbers: of these chunks. Only they are unpacked."""
        numbers = range(len(self.places)) if numbers is None else numbers
        if self._held is not None:
            for number in numbers:
                yield from self._held[number].select(columns).to_batches()
            return
        options = pa.ipc.IpcReadOptions(included_fields=columns, use_threads=False)
        for place in (self.places[number] for number in numbers):
            payload = os.pread(self._file.fileno(), place.length, place.offset)
            yield from pa.ipc.open_stream(payload, options=options)


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
