"""A stored table as one file, chunk by chunk: CSV, an Arrow stream or Parquet."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

_WHOLE = r"^-?[0-9]+$"


class TableFile(NamedTuple):
    """A format of files."""

    suffix: str
    begin: Callable[[Any, pa.Schema], Any]
    """A writer into a file: a context manager with `write_table`."""
    typed: Callable[[pa.Table], pa.Table] = lambda table: table
    """The table as the format is to show it."""


class _Outbox:
    """A file whose bytes are taken away as they come."""

    closed = False

    def __init__(self) -> None:
        self._held = bytearray()

    def write(self, content: bytes) -> int:
        self._held += content
        return len(content)

    def flush(self) -> None: ...

    def take(self) -> bytes:
        taken, self._held = bytes(self._held), bytearray()
        return taken


def written(tables: Iterable[pa.Table], file: TableFile) -> Iterator[bytes]:
    """The file in parts: at most one table of `tables`, which all have one schema, is in memory at a time."""
    outbox, writer = _Outbox(), None
    for table in map(file.typed, tables):
        writer = writer or file.begin(pa.PythonFile(outbox, "w"), table.schema)
        writer.write_table(table)
        yield outbox.take()
    if writer is not None:
        writer.close()
        yield outbox.take()


def _as_texts(table: pa.Table) -> pa.Table:
    """Cells as an upload reads them back: a whole number among floats keeps its fraction, 1.0."""
    texts = [_decimal(column) if pa.types.is_floating(column.type) else column for column in table.columns]
    return pa.table(texts, names=table.column_names)


def _decimal(numbers: pa.ChunkedArray) -> pa.ChunkedArray:
    texts = numbers.cast(pa.string())
    return pc.if_else(pc.match_substring_regex(texts, _WHOLE), pc.binary_join_element_wise(texts, ".0", ""), texts)


def _begin_parquet(file: Any, schema: pa.Schema) -> Any:
    from pyarrow.parquet import ParquetWriter  # noqa: PLC0415  takes memory that serving does without

    return ParquetWriter(file, schema)


FILES = {
    "text/csv": TableFile("csv", csv.CSVWriter, _as_texts),
    "application/vnd.apache.arrow.stream": TableFile("arrow", pa.ipc.new_stream),
    "application/vnd.apache.parquet": TableFile("parquet", _begin_parquet),
}
"""By media type, the usual one first."""
