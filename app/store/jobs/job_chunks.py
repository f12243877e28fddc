"""Rows of a table that a running job has made so far: chunks that become a dataset when the job succeeds."""

from uuid import UUID

from sqlalchemy import delete, func, literal, select
from sqlalchemy import insert as plain_insert
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from app.schemas.jobs import JobState
from app.store.datasets.dataset_tables import DatasetChunkRow
from app.store.jobs.job_tables import JobChunkRow as Chunk
from app.store.jobs.job_tables import JobRow

MOVED_TOGETHER = 64
COLUMNS = ["dataset_id", "seq", "first_row", "rows", "payload"]


class JobChunkRepository:
    def __init__(self, session: Session) -> None:
        self.session = session

    def add(self, job_id: UUID, seq: int, *, first_row: int, rows: int, payload: bytes) -> None:
        """A chunk that is there already stays: another attempt has made the same one."""
        values = {"job_id": job_id, "seq": seq, "first_row": first_row, "rows": rows, "payload": payload}
        self.session.execute(insert(Chunk).values(values).on_conflict_do_nothing())

    def count(self, job_id: UUID) -> int:
        return self.session.scalars(select(func.count()).where(Chunk.job_id == job_id)).one()

    def chunk(self, job_id: UUID, seq: int) -> bytes | None:
        """The `seq`-th payload; None behind the last."""
        return self.session.scalar(select(Chunk.payload).where(Chunk.job_id == job_id, Chunk.seq == seq))

    def move(self, job_id: UUID, dataset_id: UUID, chunks: int, rows: int) -> None:
        """Make them the chunks of a dataset. Raises ValueError unless there are so many, with so many rows."""
        mine = Chunk.job_id == job_id
        counts = self.session.execute(select(func.count(), func.coalesce(func.sum(Chunk.rows), 0)).where(mine)).one()
        if tuple(counts) != (chunks, rows):
            raise ValueError(f"There are {counts} chunks and rows, not {(chunks, rows)}.")
        for seq in range(0, chunks, MOVED_TOGETHER):  # a statement's time is limited
            some = Chunk.seq.between(seq, seq + MOVED_TOGETHER - 1)
            new_dataset = literal(dataset_id, DatasetChunkRow.dataset_id.type)
            parts = select(new_dataset, Chunk.seq, Chunk.first_row, Chunk.rows, Chunk.payload).where(mine, some)
            self.session.execute(plain_insert(DatasetChunkRow).from_select(COLUMNS, parts))
            self.session.execute(delete(Chunk).where(mine, some))

    def sweep(self) -> None:
        """Delete those of jobs that ended otherwise."""
        ended = select(JobRow.id).where(JobRow.state.in_([state for state in JobState if state.terminal]))
        jobs = select(Chunk.job_id).distinct().subquery()
        for job_id in self.session.scalars(select(jobs.c.job_id).where(jobs.c.job_id.in_(ended))).all():
            self.session.execute(delete(Chunk).where(Chunk.job_id == job_id))
