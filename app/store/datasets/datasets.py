"""Datasets: the description in one row, the table itself in chunk rows. Nothing here is ever updated."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Select, and_, delete, func, insert, literal_column, or_, select
from sqlalchemy.orm import Session

from app.base.errors import DatasetInUse, DatasetNotFound
from app.schemas.datasets import Column, Dataset, DatasetPage, FileReading
from app.schemas.jobs import JobState
from app.store.base.chunk_rows import delete_chunks
from app.store.base.paging import newest, page_conditions
from app.store.datasets.dataset_tables import DatasetChunkRow, DatasetRow
from app.store.jobs.job_tables import JobRow

PAGE_COLUMNS = 20_000
"""Data sheets in one page of datasets."""
FIELDS = "id", "name", "file_format", "created_at", "size_bytes", "rows", "digest", "reading", "warnings"
BRIEF = literal_column(
    "(select jsonb_agg(jsonb_build_object('name', c -> 'name', 'kind', c -> 'kind', 'count', c -> 'count', "
    "'missing', c -> 'missing', 'distinct', c -> 'distinct') order by place) "
    "from jsonb_array_elements(datasets.columns) with ordinality as sheet(c, place))",
    DatasetRow.columns.type,
)
"""The columns without their data sheets, which are 2 kB each: read within the database."""


class Chunk(NamedTuple):
    """A run of rows as a compressed Arrow IPC stream."""

    first_row: int
    payload: bytes


class DatasetRepository:
    def __init__(self, session: Session) -> None:
        self.session = session

    def add(
        self,
        dataset_id: UUID,
        *,
        name: str,
        file_format: str,
        size_bytes: int,
        rows: int,
        digest: str,
        columns: Sequence[Column],
        reading: FileReading | None = None,
        warnings: Sequence[str],
    ) -> Dataset:
        """Its chunks follow with `add_chunk`, in the same transaction: nobody sees it half-written."""
        row = DatasetRow(
            id=dataset_id,
            name=name,
            file_format=file_format,
            size_bytes=size_bytes,
            rows=rows,
            digest=digest,
            columns=[column.model_dump(mode="json") for column in columns],
            reading=None if reading is None else reading.model_dump(mode="json"),
            warnings=list(warnings),
        )
        self.session.add(row)
        self.session.flush()
        self.session.refresh(row, ["created_at"])
        return _dataset(row)

    def add_chunk(self, dataset_id: UUID, seq: int, *, first_row: int, rows: int, payload: bytes) -> None:
        values = {"dataset_id": dataset_id, "seq": seq, "first_row": first_row, "rows": rows, "payload": payload}
        self.session.execute(insert(DatasetChunkRow), values)

    def get(self, dataset_id: UUID, *, sheets: bool = True) -> Dataset:
        """sheets: False for the name, kind and counts of each column only."""
        if sheets:
            dataset = self.find(dataset_id)
        else:
            row = self.session.execute(_described(sheets=False).where(DatasetRow.id == dataset_id)).one_or_none()
            dataset = None if row is None else _dataset(row)
        if dataset is None:
            raise DatasetNotFound
        return dataset

    def find(self, dataset_id: UUID) -> Dataset | None:
        row = self.session.get(DatasetRow, dataset_id)
        return None if row is None else _dataset(row)

    def of_digest(self, digest: str) -> UUID | None:
        """The newest dataset of this digest."""
        newest_first = select(DatasetRow.id).where(DatasetRow.digest == digest).order_by(DatasetRow.id.desc())
        return self.session.scalar(newest_first.limit(1))

    def identify(self, reference: UUID | str) -> UUID:
        """The id itself, or that of the newest dataset of this name. Raises DatasetNotFound."""
        dataset_id = newest(self.session, reference, DatasetRow.name, DatasetRow.id)
        if dataset_id is None:
            raise DatasetNotFound
        return dataset_id

    def page(
        self, limit: int, after: UUID | None = None, name: str | None = None, *, sheets: bool = True
    ) -> DatasetPage:
        """Newest first: the ids sort by time. The cursor is the last id of the page before.

        A page of very wide tables ends before `limit`.
        """
        named, order = page_conditions([] if name is None else [(DatasetRow.name, name)], DatasetRow.id)
        sizes = select(DatasetRow.id, func.jsonb_array_length(DatasetRow.columns)).where(*named).order_by(*order)
        if after is not None:
            sizes = sizes.where(DatasetRow.id < after)
        sizes_by_id = [(row[0], row[1]) for row in self.session.execute(sizes.limit(limit + 1))]
        ids = _that_fit(sizes_by_id[:limit])
        described = _described(sheets=sheets).where(DatasetRow.id.in_(ids)).order_by(DatasetRow.id.desc())
        rows = self.session.execute(described)
        cursor = str(ids[-1]) if len(sizes_by_id) > len(ids) else None
        return DatasetPage(items=[_dataset(row) for row in rows], next_cursor=cursor)

    def chunk(self, dataset_id: UUID, seq: int) -> bytes | None:
        """The `seq`-th payload; None behind the last. Raises DatasetNotFound when the dataset is gone."""
        place = (DatasetChunkRow.dataset_id == dataset_id, DatasetChunkRow.seq == seq)
        payload = self.session.scalar(select(DatasetChunkRow.payload).where(*place))
        if payload is None and self.find(dataset_id) is None:
            raise DatasetNotFound
        return payload

    def chunk_with_row(self, dataset_id: UUID, row: int) -> Chunk | None:
        """The chunk that row number `row` (from 0) is in; None behind the last."""
        chunk = DatasetChunkRow
        query = select(chunk.first_row, chunk.payload).where(
            chunk.dataset_id == dataset_id, chunk.first_row <= row, row < chunk.first_row + chunk.rows
        )
        chunk_row = self.session.execute(query).one_or_none()
        return None if chunk_row is None else Chunk(*chunk_row)

    def payloads_with_rows(self, dataset_id: UUID, rows: Sequence[int]) -> list[bytes]:
        """The payloads of all chunks that hold one of these rows, in their order."""
        chunk = DatasetChunkRow
        holds = [and_(chunk.first_row <= row, row < chunk.first_row + chunk.rows) for row in rows]
        query = select(chunk.payload).where(chunk.dataset_id == dataset_id, or_(*holds)).order_by(chunk.seq)
        return list(self.session.scalars(query))

    def delete(self, dataset_id: UUID) -> None:
        """Raises DatasetInUse while a job that has not ended needs it.

        The lock waits for submissions in progress (`JobRepository.hold_dataset`), so that the look at
        the jobs after it sees them; a submission that comes later finds no dataset.
        """
        locked = select(DatasetRow.id).where(DatasetRow.id == dataset_id).with_for_update()
        if self.session.scalar(locked) is None:
            raise DatasetNotFound
        needed = or_(JobRow.dataset_id == dataset_id, JobRow.inputs.contains({"datasets": [str(dataset_id)]}))
        unfinished = JobRow.state.in_([s for s in JobState if not s.terminal])
        # A count: of an EXISTS the planner may hope that the table shows one soon, without the index of states.
        if self.session.scalar(select(func.count()).where(needed, unfinished)):
            raise DatasetInUse
        delete_chunks(self.session, DatasetChunkRow.seq, DatasetChunkRow.dataset_id == dataset_id)
        self.session.execute(delete(DatasetRow).where(DatasetRow.id == dataset_id))


def _that_fit(sizes_by_id: Sequence[tuple[UUID, int]]) -> list[UUID]:
    """The first ids whose data sheets fill a page, at least one."""
    totals = accumulate(columns for _, columns in sizes_by_id)
    return [
        dataset_id
        for index, ((dataset_id, _), total) in enumerate(zip(sizes_by_id, totals, strict=True))
        if not index or total <= PAGE_COLUMNS
    ]


def _described(*, sheets: bool) -> Select[Any]:
    columns = DatasetRow.columns if sheets else BRIEF.label("columns")
    return select(*(getattr(DatasetRow, field) for field in FIELDS), columns)


def _dataset(row: Any) -> Dataset:
    return Dataset(**{field: getattr(row, field) for field in FIELDS}, columns=row.columns)
