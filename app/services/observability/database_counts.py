"""Counts that only the database knows, read at most every few seconds, and never waited for long."""

import asyncio
import time
from collections.abc import Callable
from typing import Generic, TypeVar

import structlog

from app.services.threads.single_flight import SingleFlight
from app.store.base.database_errors import to_log
from app.store.jobs.job_counts import Counts, Queue
from app.store.jobs.worker_registry import Workers
from app.store.unit_of_work import Work, WorkFactory

T = TypeVar("T")
FRESH_SECONDS, COUNTED_SECONDS = 5.0, 60.0
"""Seconds that a count is kept: of what changes all the time, and of the finished jobs, which are many."""
log = structlog.get_logger(__name__)


class Metric(Generic[T]):
    """The value that a function reads. It is None until it could be read, and again when it cannot be read any more."""

    def __init__(self, work: WorkFactory, read: Callable[[Work], T], seconds: float) -> None:
        self.value: T | None = None
        self._work, self._read, self._seconds = work.across_projects, read, seconds
        self._due = 0.0

    @property
    def due(self) -> bool:
        return time.monotonic() >= self._due

    def renew(self) -> None:
        try:
            with self._work() as w:
                self.value = self._read(w)
        except Exception as error:  # noqa: BLE001  whatever it is, there is no value
            self.value = None
            log.warning("counts_unknown", **to_log(error))
            return
        self._due = time.monotonic() + self._seconds


class Census:
    def __init__(self, work: WorkFactory, *, silent_seconds: float) -> None:
        """silent_seconds: after so long a worker that was not seen counts as silent."""
        self._workers = Metric(work, lambda w: w.workers.count(silent_seconds), FRESH_SECONDS)
        self._queue = Metric(work, lambda w: w.census.queue(), FRESH_SECONDS)
        self._finished = Metric(work, lambda w: w.census.finished(), COUNTED_SECONDS)
        self._backup = Metric(work, lambda w: w.census.backup_seconds(), COUNTED_SECONDS)
        self._flights: SingleFlight[int, None] = SingleFlight(2, "census")
        self.queue: Queue | None = None
        """Queue at the last refresh; None if the database did not respond."""

    @property
    def workers(self) -> Workers | None:
        """Workers at the last refresh; None if the database did not respond."""
        return None if self._workers.due else self._workers.value

    @property
    def finished(self) -> Counts:
        """Counts of jobs by kind and state, as of the last minute; empty before they are known."""
        return self._finished.value or {}

    @property
    def backup_seconds(self) -> float | None:
        """When the newest backup was made, in seconds since 1970; 0 where none is stated, None before it is known."""
        return self._backup.value

    async def refresh(self, seconds: float) -> None:
        """Read what is due. After `seconds` what has not been read is left to the next call."""
        due = [
            asyncio.wrap_future(self._flights.join(id(metric), metric.renew)) for metric in self._metrics if metric.due
        ]
        if due:
            await asyncio.wait(due, timeout=seconds)
        self.queue = None if self._queue.due else self._queue.value

    @property
    def _metrics(self) -> tuple[Metric[Queue], Metric[Workers], Metric[Counts], Metric[float]]:
        return self._queue, self._workers, self._finished, self._backup
