"""Counts of jobs by kind and state, and the age of the queue: from one index, without a look at the jobs."""

from collections.abc import Mapping
from typing import NamedTuple

from sqlalchemy import extract, func, select
from sqlalchemy.orm import Session

from app.schemas.jobs import JobState
from app.store.base.backup_time import read_backup_time
from app.store.jobs.job_tables import JobRow

Counts = Mapping[tuple[str, str], int]
"""Jobs by kind and state."""


class Queue(NamedTuple):
    """Jobs that have not ended."""

    jobs: Counts
    oldest_seconds: float
    """Seconds that the job at the head of the queue has waited; 0 if there is none."""

    @property
    def waiting(self) -> int:
        return sum(count for (_, state), count in self.jobs.items() if state == JobState.QUEUED)


class Census:
    def __init__(self, session: Session) -> None:
        self.session = session

    def queue(self) -> Queue:
        return Queue(self._count(finished=False), self._oldest_seconds())

    def finished(self) -> Counts:
        """They are many: to count a million takes a fifth of a second."""
        return self._count(finished=True)

    def backup_seconds(self) -> float:
        """When the newest backup was made, in seconds since 1970; 0 where none is stated."""
        time = read_backup_time(self.session)
        return 0.0 if time is None else time.timestamp()

    def _count(self, *, finished: bool) -> Counts:
        states = [state for state in JobState if state.terminal is finished]
        counted = select(JobRow.kind, JobRow.state, func.count()).where(JobRow.state.in_(states))
        counts = self.session.execute(counted.group_by(JobRow.kind, JobRow.state))
        return {(kind, state): count for kind, state, count in counts}

    def _oldest_seconds(self) -> float:
        age = extract("epoch", func.clock_timestamp() - JobRow.created_at)
        queue = select(age).where(
            JobRow.state.between(JobState.QUEUED, JobState.QUEUED)
        )  # as `app.store.base.paging.page_conditions`
        return float(self.session.scalar(queue.order_by(JobRow.state, JobRow.id).limit(1)) or 0.0)
