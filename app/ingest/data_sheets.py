"""The data sheets of a table whose chunks are written, a group of columns in memory at a time."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from app.ingest.arrow_types import Settled
from app.ingest.chunks import ChunkFile
from app.ingest.joined_columns import JOINED_COLUMNS, SHORT_BYTES
from app.ml.contract.columns import ColumnKind
from app.ml.evaluation.splits import evenly
from app.ml.tables import smoothness
from app.ml.tables.column_sheet import describe
from app.ml.tables.column_statistics import NUMERIC_TYPES, numeric_statistics
from app.ml.tables.data_sheet import Chunks, Column
from app.ml.tables.smoothness import SampledColumn

CHUNKS = 16
"""Read for a sample of rows."""
JOINED_BYTES = 8 << 20
GROUP_BYTES = 256 << 20
"""Columns held together; one that is longer is read again for each pass over it."""


def sheets(settled: Settled, chunks: ChunkFile) -> Iterator[Column]:
    """`settled` has been read to its end."""
    names, types, sizes = settled.schema.names, settled.schema.types, settled.sizes
    for group in _groups(sizes):
        alone = sizes[group.start] > GROUP_BYTES
        columns = [_streamed(chunks, group.start)] if alone else _held(chunks, group)
        statistics: dict[int, dict[str, Any]] = {}
        for number, parts in zip(group, columns, strict=True):
            if (number - group.start) % JOINED_COLUMNS == 0:
                statistics = _short(group, columns, number, sizes, types)
            joined = _joined(parts, sizes[number])
            column = describe(
                names[number], types[number], joined, settled.remark(names[number]), statistics.get(number)
            )
            yield column.model_copy(update={"identifier_like": True}) if column.name == settled.index else column


def _short(
    group: range, columns: Sequence[Chunks], first: int, sizes: Sequence[int], types: Sequence[pa.DataType]
) -> dict[int, dict[str, Any]]:
    """Statistics of the short numeric columns among the next ones, which are computed together."""
    numbers = [
        number
        for number in group[first - group.start :][:JOINED_COLUMNS]
        if sizes[number] <= SHORT_BYTES and types[number].id in NUMERIC_TYPES
    ]
    values = [pa.concat_arrays(columns[number - group.start]()) for number in numbers]
    return dict(zip(numbers, numeric_statistics(values), strict=True))


def compared(columns: Sequence[Column], chunks: ChunkFile) -> list[Column]:
    """The same sheets, with the smoothness of each column beside the others, from a sample of rows."""
    chosen = [
        index for index, column in enumerate(columns) if column.kind != ColumnKind.TEXT and not column.identifier_like
    ]
    chosen = chosen[: smoothness.COLUMNS]
    if len(chosen) < 2:
        return list(columns)
    sample = _sample(chunks, chosen)
    smoothness_of = smoothness.smoothness(
        {columns[index].name: SampledColumn.of(cells) for index, cells in zip(chosen, sample, strict=True)}
    )
    return [
        column.model_copy(update={"smoothness": smoothness_of[column.name]}) if column.name in smoothness_of else column
        for column in columns
    ]


def _sample(chunks: ChunkFile, chosen: list[int]) -> list[pa.Array]:
    """Rows far from each other, from a few chunks."""
    few = evenly(len(chunks.places), CHUNKS).tolist()
    parts = [
        batch.take(pa.array(evenly(len(batch), -(-smoothness.ROWS // len(few))))) for batch in chunks.read(chosen, few)
    ]
    return [pa.concat_arrays(chunk.column(index) for chunk in parts) for index in range(len(chosen))]


def _groups(sizes: Sequence[int]) -> Iterator[range]:
    """Neighbours that fit into GROUP_BYTES together; what does not fit is alone."""
    start, held = 0, 0
    for number, size in enumerate(sizes):
        if number > start and held + size > GROUP_BYTES:
            yield range(start, number)
            start, held = number, 0
        held += size
    yield range(start, len(sizes))


def _held(chunks: ChunkFile, group: range) -> list[Chunks]:
    batches = list(chunks.read(list(group)))
    return [partial(_column, batches, index) for index in range(len(group))]


def _column(batches: list[pa.RecordBatch], index: int) -> Iterator[pa.Array]:
    return (batch.column(index) for batch in batches)


def _joined(parts: Chunks, size: int) -> Chunks:
    """In one array if it is small: every chunk costs some time in each pass."""
    if size > JOINED_BYTES:
        return parts
    whole = pa.concat_arrays(parts())
    return lambda: iter([whole])


def _streamed(chunks: ChunkFile, number: int) -> Chunks:
    return lambda: (batch.column(0) for batch in chunks.read([number]))
