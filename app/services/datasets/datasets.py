"""Datasets: uploaded files turned into immutable typed tables."""

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO
from uuid import UUID

import pyarrow as pa

from app.base.errors import DatasetNotFound, InvalidRequest, StorageFull
from app.base.faults import Fault
from app.base.references import NAME_LENGTH, RESERVED, is_dataset_name
from app.base.settings import Settings
from app.ingest.parser_processes import Parser
from app.ingest.protocol import Order, Parsed
from app.ingest.upload_options import ReadOptions
from app.ingest.uploaded_file import Limits
from app.ml.contract.column_names import no_column
from app.ml.evaluation.splits import evenly
from app.ml.tables.column_statistics import iso
from app.processes.disk_space import demand_room
from app.schemas.datasets import Dataset, DatasetPage, FileFormat, Rows
from app.store.base.new_ids import uuid7
from app.store.unit_of_work import Work, WorkFactory

UNNAMED = "dataset"
MAX_UPLOADS = 512
"""Received by one process, being parsed or waiting for it, of all projects."""
MOST_CELLS = 1_000_000
"""Values in one response of rows."""
SMALL_CELLS = 250_000
"""Values of a dataset that is read before a job exists: of a square table 500 rows, of pairs 80,000."""
SAMPLED_CHUNKS, MIN_SAMPLED_ROWS = 4, 200
"""Chunks of a larger dataset that a dry run looks at, and rows of a very wide one."""
MOST_BYTES = 16 << 20
"""After so many a response of rows ends with the chunk."""


class Datasets:
    def __init__(self, work: WorkFactory, settings: Settings) -> None:
        self._work, self._settings = work, settings
        self._parser = Parser(settings.parse_concurrency)
        self.threads = ThreadPoolExecutor(MAX_UPLOADS, thread_name_prefix="uploads")

    def warm(self) -> None:
        """Start what makes the first upload quick. Only processes that take uploads need it."""
        self._parser.warm()

    def close(self) -> None:
        self._parser.close()
        self.threads.shutdown(wait=False, cancel_futures=True)

    def spool(self) -> BinaryIO:
        """An open file on the chosen disk without a name: it is gone when it is closed, or its process ends.

        Raises StorageFull.
        """
        demand_room(self._settings)
        folder = self._settings.spool or self._settings.data / "spool"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return tempfile.TemporaryFile(dir=folder)
        except OSError:
            raise StorageFull("The folder for uploads cannot be written to: see VALIANT_SPOOL.") from None

    def ingest(
        self,
        spool: Path | BinaryIO,
        *,
        name: str | None,
        file_name: str | None = None,
        file_format: FileFormat | str | None,
        options: ReadOptions = ReadOptions(),  # noqa: B008  frozen
        size_bytes: int,
        digest: str,
        together: Callable[[Work, Dataset], object] = lambda _, __: None,
    ) -> Dataset:
        """Parse an uploaded file and keep it.

        Raises InvalidData, BodyTooLarge, StorageFull or QuotaExceeded; then nothing is kept.

        `digest` is "sha256:…" of the uploaded bytes. Without a `file_format` it is detected, also by the end of
        `file_name` or else of `name`. together: runs in the transaction that keeps it.
        """
        if isinstance(spool, Path):
            with spool.open("rb") as file:
                return self.ingest(
                    file,
                    name=name,
                    file_name=file_name,
                    file_format=file_format,
                    options=options,
                    size_bytes=size_bytes,
                    digest=digest,
                )
        name = clean_name(name)
        with self.spool() as chunks:
            order = self._order(file_name or name, None if file_format is None else FileFormat(file_format), options)
            parsed = self._parser.parse(order, spool.fileno(), chunks.fileno())
            dataset_id = uuid7()

            def keep(w: Work) -> Dataset:
                stored = w.datasets.find(dataset_id)  # the commit of a lost connection may have happened
                if stored is not None:
                    return stored
                dataset = _keep(w, dataset_id, parsed, chunks, name=name, size_bytes=size_bytes, digest=digest)
                together(w, dataset)
                w.quotas.demand(storage_bytes=0)
                return dataset

            return self._work.retry(keep)

    def _order(self, file_name: str, file_format: FileFormat | None, options: ReadOptions) -> Order:
        s = self._settings
        return Order(
            name=file_name,
            file_format=file_format,
            options=options,
            limits=Limits(s.max_rows, s.max_columns, s.max_upload_bytes, s.chunk_bytes),
            memory_bytes=s.parse_memory_bytes,
            seconds=int(s.parse_seconds) + 1,
            file_bytes=4 * s.max_upload_bytes,
        )

    def get(self, dataset: UUID | str, *, sheets: bool = True) -> Dataset:
        """By its id, or the newest of a name; with the data sheets of its columns. Raises DatasetNotFound."""
        with self._work() as w:
            return w.datasets.get(w.datasets.identify(dataset), sheets=sheets)

    def page(
        self, limit: int, cursor: str | None = None, *, name: str | None = None, sheets: bool = True
    ) -> DatasetPage:
        """Newest first."""
        with self._work() as w:
            return w.datasets.page(limit, None if cursor is None else _place(cursor), name, sheets=sheets)

    def delete(self, dataset: UUID | str) -> None:
        """Raises DatasetInUse while an unfinished job needs it."""
        with self._work() as w:
            w.datasets.delete(w.datasets.identify(dataset))

    def payloads(self, dataset_id: UUID) -> Iterator[bytes]:
        """The table, a few MiB of rows at a time, each a compressed Arrow IPC stream; one transaction per batch."""
        return self._work.chunks(lambda w, seq: w.datasets.chunk(dataset_id, seq))

    def tables(self, dataset_id: UUID) -> Iterator[pa.Table]:
        """The table, a few MiB of rows at a time."""
        return map(_table, self.payloads(dataset_id))

    def rows(self, reference: UUID | str, offset: int, limit: int, columns: Sequence[str] | None = None) -> Rows:
        """A window of the table; only the chunks it lies in are read. It ends early where values are very long."""
        dataset = self.get(reference, sheets=False)
        names = _chosen([column.name for column in dataset.columns], columns)
        if limit * len(names) > MOST_CELLS:
            fault = Fault("/query/limit", f"At most {MOST_CELLS} values at a time: fewer rows or columns.", "too_many")
            raise InvalidRequest("Too many values were requested.", faults=[fault])
        data: list[list[Any]] = []
        size, end = 0, min(offset + limit, dataset.rows)
        while offset + len(data) < end and size < MOST_BYTES:
            window = self._window(dataset.id, offset + len(data), end, names)
            values = [[_plain(value) for value in column.to_pylist()] for column in window.columns]
            data += [list(row) for row in zip(*values, strict=True)]
            size += window.nbytes
        return Rows(columns=names, data=data, offset=offset, total=dataset.rows)

    def _window(self, dataset_id: UUID, start: int, end: int, names: list[str]) -> pa.Table:
        """Rows from `start`, at most up to `end`, as far as their chunk goes."""
        with self._work() as w:
            chunk = w.datasets.chunk_with_row(dataset_id, start)
        if chunk is None:  # deleted in the meantime
            raise DatasetNotFound
        return _table(chunk.payload).select(names).slice(start - chunk.first_row, end - start)


def _table(payload: bytes) -> pa.Table:
    with pa.ipc.open_stream(payload) as stream:
        return stream.read_all()


def at_hand(w: Work, dataset: Dataset) -> Callable[[], pa.Table | None]:
    """A decoder of all rows of a dataset of at most `SMALL_CELLS` values in one chunk, after the transaction too.

    It returns None for a larger one.
    """
    small = dataset.rows * len(dataset.columns) <= SMALL_CELLS
    chunk = w.datasets.chunk_with_row(dataset.id, 0) if small else None

    def decoded() -> pa.Table | None:
        table = None if chunk is None else _table(chunk.payload)
        return table if table is not None and table.num_rows == dataset.rows else None

    return decoded


def sampled_rows(w: Work, dataset: Dataset) -> Callable[[], pa.Table]:
    """A decoder of all rows of a small dataset, after the transaction too; of a larger one of blocks of rows from a few
    chunks, of about `SMALL_CELLS` values in all.
    """
    rows = min(dataset.rows, max(MIN_SAMPLED_ROWS, SMALL_CELLS // max(1, len(dataset.columns))))
    payloads = w.datasets.payloads_with_rows(dataset.id, evenly(dataset.rows, SAMPLED_CHUNKS).tolist())

    def decoded() -> pa.Table:
        tables = [*map(_table, payloads)]
        if sum(table.num_rows for table in tables) == dataset.rows == rows:
            return pa.concat_tables(tables)
        return pa.concat_tables(table.slice(0, -(-rows // len(tables))) for table in tables)

    return decoded


def clean_name(name: str | None) -> str:
    """Raises InvalidRequest for anything but a name that `app.base.references` accepts. None is "dataset"."""
    if name is None:
        return UNNAMED
    if is_dataset_name(name) and name != RESERVED:
        return name
    rule = f"A name is 1 to {NAME_LENGTH} printable characters that do not read as a UUID, and not {RESERVED!r}."
    fault = Fault("/query/name", rule, "bad_name")
    raise InvalidRequest("The name cannot be used.", faults=[fault])


def _keep(
    w: Work, dataset_id: UUID, parsed: Parsed, chunks: BinaryIO, *, name: str, size_bytes: int, digest: str
) -> Dataset:
    """Description and chunks in the one transaction of `w`; one chunk in memory at a time."""
    dataset = w.datasets.add(
        dataset_id,
        name=name,
        file_format=parsed.reading.file_format,
        size_bytes=size_bytes,
        rows=parsed.rows,
        digest=digest,
        columns=parsed.columns,
        reading=parsed.reading,
        warnings=parsed.warnings,
    )
    for seq, place in enumerate(parsed.chunks):
        payload = os.pread(chunks.fileno(), place.length, place.offset)
        w.datasets.add_chunk(dataset_id, seq, first_row=place.first_row, rows=place.rows, payload=payload)
    w.audit.note_created(f"/v1/datasets/{dataset_id}")
    return dataset


def _place(cursor: str) -> UUID:
    try:
        return UUID(cursor)
    except ValueError:
        fault = Fault("/query/cursor", "This is no cursor of this list.", "bad_cursor")
        raise InvalidRequest("The cursor cannot be used.", faults=[fault]) from None


def _chosen(names: list[str], requested: Sequence[str] | None) -> list[str]:
    if not requested:
        return names
    all_names = set(names)
    faults = [
        no_column(f"/query/columns/{index}", name, names)
        for index, name in enumerate(requested)
        if name not in all_names
    ]
    if faults:
        raise InvalidRequest("Some columns are unknown.", faults=faults)
    return list(dict.fromkeys(requested))


def _plain(value: Any) -> Any:
    return iso(value) if isinstance(value, datetime) else value
