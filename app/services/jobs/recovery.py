"""Recovery: jobs whose lease has expired are queued again or ended, and forgotten ones are announced again."""

import contextvars
from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

import structlog
from sqlalchemy.exc import DBAPIError

from app.base.errors import WorkerLost
from app.base.project_context import PROJECT
from app.base.settings import Settings
from app.schemas.problems import Problem
from app.services.jobs.attempts import AttemptCounts, backoff
from app.services.jobs.partial_results import publish_best
from app.store.jobs.job_records import ExpiredLease
from app.store.unit_of_work import WorkFactory

log = structlog.get_logger(__name__)


class Swept(NamedTuple):
    recovered: int
    """Attempts whose lease expired."""
    announced: int
    """Queued jobs announced again."""


class Recovery:
    def __init__(
        self, work: WorkFactory, announce: Callable[[UUID], object], settings: Settings, counts: AttemptCounts
    ) -> None:
        self._work, self._own_work = work.across_projects, work
        self._announce = announce
        self._settings = settings
        self._counts = counts

    def sweep(self, held: int | None) -> Swept:
        """Take up what others dropped: expired leases, forgotten ids. Safe at any time, in any number of processes.

        held: messages the broker still has; None if it does not respond.
        """
        recovered = sum(self._recovered(lease) for lease in self._work.retry(lambda w: w.leases.expired(self._grace)))
        self._counts.lost += recovered
        self._work.retry(lambda w: w.job_chunks.sweep())
        self._work.retry(lambda w: w.job_parts.sweep())
        self._work.retry(lambda w: w.files.sweep())
        self._work.retry(lambda w: w.uploads.sweep())
        if held is None:
            return Swept(recovered, 0)
        pause = self._settings.republish_seconds
        forgotten = self._work.retry(lambda w: w.jobs.forgotten(held, pause))
        for job_id in forgotten:
            self._announce(job_id)
        return Swept(recovered, len(forgotten))

    def _recovered(self, lease: ExpiredLease) -> bool:
        """One row, one transaction. A database that blinks leaves the row to the next sweep."""
        error = Problem.of(WorkerLost())
        pause = backoff(self._settings, lease.attempt)
        try:
            context = contextvars.copy_context()
            done = context.run(self._recover, lease, error, pause)
        except DBAPIError:
            log.warning("sweep_interrupted", job_id=str(lease.job_id), exc_info=True)
            return False
        if done:
            log.warning("lease_expired", job_id=str(lease.job_id), attempt=lease.attempt)
        return done

    def _recover(self, lease: ExpiredLease, error: Problem, pause: float) -> bool:
        """In the project of the job, to which a version of it belongs."""
        PROJECT.set(lease.project_id)
        with self._own_work() as w:
            return w.leases.recover(
                lease,
                grace_seconds=self._grace,
                seconds=pause,
                error=error,
                stored=lambda state: publish_best(w, lease.job_id, state, self._settings.chunk_bytes),
            )

    @property
    def _grace(self) -> float:
        """Seconds a database must have been up before an expired lease is evidence about its holder."""
        return 5 * self._settings.beat_seconds
