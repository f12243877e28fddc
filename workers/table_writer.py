"""The table that a job makes, sent to the supervisor chunk by chunk; at most one is in memory."""

import hashlib
from collections.abc import Iterator
from typing import IO

import pyarrow as pa

from app.ingest.chunks import payload_of
from app.ml.kinds.job import Table, WrittenTable
from app.ml.tables.column_sheet import describe
from app.ml.tables.data_sheet import Chunks, Remark
from workers import trainer_frames as frames
from workers.mapped_dataset import spooled


def write_table(outlet: IO[bytes], table: Table, stored: int) -> WrittenTable:
    """Send all batches but the first `stored`, and describe the whole. Raises StorageFull."""
    digest, chunks, rows, size = hashlib.sha256(), 0, 0, 0

    def sent() -> Iterator[pa.Table]:
        nonlocal chunks, rows, size
        for batch in table.batches:
            payload = payload_of(batch)
            digest.update(payload)
            if chunks >= stored:
                frames.write_chunk(outlet, frames.Place(chunks, rows, len(batch)), memoryview(payload))
            chunks, rows, size = chunks + 1, rows + len(batch), size + len(payload)
            yield batch

    whole = spooled(sent())
    names = whole.column_names
    columns = [
        describe(name, whole[name].type, _parts(whole[name]), table.remarks.get(name, Remark())) for name in names
    ]
    content_digest = f"sha256:{digest.hexdigest()}"
    return WrittenTable(
        name=table.name, rows=rows, chunks=chunks, size_bytes=size, digest=content_digest, columns=columns
    )


def _parts(column: pa.ChunkedArray) -> Chunks:
    return lambda: iter(column.chunks)
