"""Registry of workers, and how long each has been silent, by the clock of the database."""

from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import delete, extract, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from app.store.base.table_base import NOW
from app.store.jobs.job_tables import WorkerRow

FORGOTTEN = timedelta(minutes=10)
"""A worker that was silent for so long is gone for good."""


class Workers(NamedTuple):
    """Workers by whether they were seen lately."""

    alive: int
    silent: int
    longest_silence_seconds: float
    """Longest silence of the silent ones; 0 if there is none."""
    kernels_left_seconds: float
    """Time that kernels will take that are not compiled yet, of the worker with most of them."""
    compiling: str | None
    """The same in words; None: all are compiled."""


class WorkerRepository:
    def __init__(self, session: Session) -> None:
        self.session = session

    def seen(
        self,
        name: str,
        holder: UUID | None = None,
        *,
        kernels_left_seconds: float | None = None,
        compiling: str | None = None,
    ) -> None:
        """The worker of this name lives, as the process that holds leases as `holder`, and has so much to compile.

        Those who have been silent for very long are forgotten.
        """
        self.session.execute(delete(WorkerRow).where(WorkerRow.seen_at < func.clock_timestamp() - FORGOTTEN))
        state = {"holder": holder, "kernels_left_seconds": kernels_left_seconds or 0.0, "compiling": compiling}
        first = insert(WorkerRow).values(name=name, seen_at=NOW, **state)
        again = {"seen_at": func.clock_timestamp(), **state}
        self.session.execute(first.on_conflict_do_update(index_elements=[WorkerRow.name], set_=again))

    def left(self, name: str) -> None:
        self.session.execute(delete(WorkerRow).where(WorkerRow.name == name))

    def count(self, silent_seconds: float) -> Workers:
        """silent_seconds: after so long a worker counts as silent."""
        age = extract("epoch", func.clock_timestamp() - WorkerRow.seen_at)
        rows = list(self.session.execute(select(age, WorkerRow.kernels_left_seconds, WorkerRow.compiling)))
        silent = [float(seconds) for seconds, _, _ in rows if seconds > silent_seconds]
        left, compiling = max(
            ((left, text) for age, left, text in rows if age <= silent_seconds),
            key=lambda worker: worker[0],
            default=(0.0, None),
        )
        return Workers(len(rows) - len(silent), len(silent), max(silent, default=0.0), left, compiling)
