"""Parts of a running job that outlive its attempt: units of work, and the model that could be served now."""

import json
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

from sqlalchemy import delete, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from app.schemas.jobs import JobState
from app.store.jobs.job_tables import JobCheckpointRow, JobRow, JobUnitRow

PARTS = "head", "blob", "seen", "reference"


class JobPartRepository:
    def __init__(self, session: Session) -> None:
        self.session = session

    def add_unit(self, job_id: UUID, outcome: Mapping[str, Any], payload: bytes) -> None:
        """The next unit. The caller holds the job's lease, so that there is one writer."""
        last = select(func.coalesce(func.max(JobUnitRow.seq), -1)).where(JobUnitRow.job_id == job_id)
        seq = self.session.scalars(last).one() + 1
        values = {"job_id": job_id, "seq": seq, "outcome": dict(outcome), "payload": payload}
        self.session.execute(insert(JobUnitRow).values(values))

    def outcomes(self, job_id: UUID) -> list[dict[str, Any]]:
        """Outcomes of all units, in their order."""
        query = select(JobUnitRow.outcome).where(JobUnitRow.job_id == job_id).order_by(JobUnitRow.seq)
        return [*self.session.scalars(query)]

    def unit(self, job_id: UUID, seq: int) -> tuple[dict[str, Any], bytes] | None:
        """Outcome and payload of the `seq`-th unit; None behind the last."""
        mine = JobUnitRow.job_id == job_id, JobUnitRow.seq == seq
        row = self.session.execute(select(JobUnitRow.outcome, JobUnitRow.payload).where(*mine)).one_or_none()
        return None if row is None else (row[0], row[1])

    def replace_checkpoint(self, job_id: UUID, parts: Mapping[str, bytes], chunk_bytes: int) -> None:
        """Store a model in place of the one before. parts: by the names of `PARTS`."""
        self.session.execute(delete(JobCheckpointRow).where(JobCheckpointRow.job_id == job_id))
        for part, content in parts.items():
            for seq, start in enumerate(range(0, len(content), chunk_bytes)):
                chunk = content[start : start + chunk_bytes]
                values = {"job_id": job_id, "part": part, "seq": seq, "payload": chunk}
                self.session.execute(insert(JobCheckpointRow).values(values))

    def checkpoint(self, job_id: UUID) -> tuple[dict[str, Any], bytes, bytes, bytes] | None:
        """Head, model, hashes and distributions; None: no model is stored."""
        head, *rest = (b"".join(self._chunks(job_id, part)) for part in PARTS)
        return (json.loads(head), rest[0], rest[1], rest[2]) if head else None

    def _chunks(self, job_id: UUID, part: str) -> Iterator[bytes]:
        mine = JobCheckpointRow.job_id == job_id, JobCheckpointRow.part == part
        yield from self.session.scalars(select(JobCheckpointRow.payload).where(*mine).order_by(JobCheckpointRow.seq))

    def sweep(self) -> None:
        """Delete those of jobs that have ended."""
        ended = select(JobRow.id).where(JobRow.state.in_([state for state in JobState if state.terminal]))
        for table in (JobUnitRow, JobCheckpointRow):
            jobs = select(table.job_id).distinct().subquery()
            for job_id in self.session.scalars(select(jobs.c.job_id).where(jobs.c.job_id.in_(ended))).all():
                self.session.execute(delete(table).where(table.job_id == job_id))
