"""The life of a job after it was accepted: claimed, kept alive, ended, swept up.

Whatever ends an attempt is written under its lease; of two writers the second gets LeaseLost.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import NamedTuple, TypeVar
from uuid import UUID, uuid4

import structlog
from sqlalchemy.exc import DBAPIError

from app.errors import Cancelled, LeaseLost, TimedOut, WorkerLost
from app.ml.catalogue import catalogue
from app.ml.job import Outcome, Trained
from app.ml.models.golden import check_golden
from app.ml.models.model import decode
from app.ml.operations import kinds
from app.schemas.jobs import Job, JobPage, JobState
from app.schemas.problems import Problem
from app.settings import Settings
from app.store.claims import Capable, Claim, Lapsed
from app.store.work import Work, WorkFactory

END_SECONDS = 3600.0
"""So long the end of an attempt is kept in memory while the database is away or its disk is full."""
T = TypeVar("T")
log = structlog.get_logger(__name__)


class Swept(NamedTuple):
    recovered: int
    """Attempts whose lease nobody renewed."""
    announced: int
    """Queued jobs announced again."""


class Attempts:
    """Counts of attempts that this process began, and of how they ended."""

    def __init__(self) -> None:
        self.lost = 0
        """Attempts of any process whose lease ran out, as this one found."""
        self._counts: Counter[tuple[str, str, str]] = Counter()
        self._lock = Lock()

    def count(self, kind: str, event: str, reason: str = "") -> None:
        with self._lock:
            self._counts[kind, event, reason] += 1

    def counts(self) -> dict[tuple[str, str, str], int]:
        """By kind of job, event (`started`, or the state in which the attempt left the job) and reason."""
        with self._lock:
            return dict(self._counts)


class Jobs:
    def __init__(self, work: WorkFactory, announce: Callable[[UUID], object], settings: Settings) -> None:
        self._work = work
        self._announce = announce
        self._settings = settings
        self.attempts = Attempts()

    # for clients

    def get(self, job: UUID | str) -> Job:
        """By its id, or the newest of a name. Raises JobNotFound."""
        with self._work() as w:
            return w.jobs.get(w.jobs.identify(job))

    def page(
        self, limit: int, cursor: str | None = None, *, state: JobState | None = None, name: str | None = None
    ) -> JobPage:
        with self._work() as w:
            return w.jobs.page(limit, cursor, state=state, name=name)

    def cancel(self, job: UUID | str) -> Job:
        """Idempotent: a second time, or too late, it changes nothing. Raises JobNotFound."""
        return self._work.retry(lambda w: w.jobs.cancel(w.jobs.identify(job)), seconds=5)

    # what workers do

    def claim(self, job_id: UUID) -> Claim | None:
        """Begin an attempt: counted from now on, whatever becomes of it. None: there is nothing to run."""
        token = uuid4()
        lease = self._settings.lease_seconds
        claimed = self._work.retry(lambda w: w.jobs.claim(job_id, token, lease, _capable()))
        if claimed is not None:
            self.attempts.count(claimed.kind, "started")
        return claimed

    def claim_oldest(self) -> Claim | None:
        """Begin an attempt of the job that has waited longest, without the broker."""
        job_id = self._work.retry(lambda w: w.jobs.oldest(_capable()))
        return None if job_id is None else self.claim(job_id)

    def beat(
        self, claim: Claim, *, progress: float, message: str = "", curves: Mapping[str, Sequence[float]] | None = None
    ) -> JobState:
        """Renew the lease and publish the progress. Cancelling means: stop. Raises LeaseLost."""
        with self._work() as w:
            return w.jobs.beat(claim, self._settings.lease_seconds, progress, message, _lists(curves))

    def succeed(self, claim: Claim, outcome: Outcome, *, curves: Mapping[str, Sequence[float]] | None = None) -> None:
        """The outcome and the job's success, both or neither: a version, a result, or both.

        Raises GoldenMismatch when the bytes do not predict what was promised, Cancelled, LeaseLost.
        """
        if outcome.trained is not None:
            check_golden(decode(outcome.trained.blob), outcome.trained.golden)

        def publish(w: Work) -> None:
            w.jobs.hold(claim)
            result = outcome if outcome.evaluation_rows is None else outcome.used(w.uses.count(outcome.evaluation_rows))
            version = None if result.trained is None else self._add_version(w, claim, result.trained)
            w.jobs.succeed(
                claim, version=version, result=result.result, warnings=result.warnings, curves=_lists(curves)
            )

        self._end(claim, publish, "succeeded")

    def _add_version(self, w: Work, claim: Claim, trained: Trained) -> int:
        if claim.model is None or claim.dataset_id is None:
            raise ValueError("A model is made for a name, from a dataset.")
        made = w.models.add_version(
            model=claim.model,
            job_id=claim.job_id,
            dataset_id=claim.dataset_id,
            blob=trained.blob,
            report=trained.report,
            golden=trained.golden,
            chunk_bytes=self._settings.chunk_bytes,
        )
        w.training_rows.add(made.model, made.version, trained.seen, self._settings.chunk_bytes)
        return made.version

    def fail(self, claim: Claim, error: Problem, *, retry: bool = False) -> None:
        """End the job, or with `retry` queue it again while attempts are left. Raises Cancelled, LeaseLost."""
        if retry and claim.attempt < claim.max_attempts:
            pause = self._backoff(claim.attempt)
            self._end(claim, lambda w: w.jobs.requeue(claim, reason=error.code, seconds=pause), "queued", error.code)
        else:
            self._end(claim, lambda w: w.jobs.fail(claim, JobState.FAILED, error), "failed", error.code)

    def time_out(self, claim: Claim) -> None:
        """Raises Cancelled, LeaseLost."""
        late = TimedOut(f"It ran for {claim.time_limit_seconds:g} seconds.")
        error = Problem.of(late, request_id=claim.request_id)
        self._end(claim, lambda w: w.jobs.fail(claim, JobState.TIMED_OUT, error), "timed_out", error.code)

    def stop(self, claim: Claim) -> None:
        """The attempt of a job in cancelling is over. Raises LeaseLost."""
        self._work.retry(lambda w: w.jobs.finish_cancel(claim))
        self.attempts.count(claim.kind, "cancelled")

    def release(self, claim: Claim) -> None:
        """Give the job back because the worker stops; the attempt does not count. Raises Cancelled, LeaseLost."""
        reason = "worker_stopped"
        self._end(claim, lambda w: w.jobs.requeue(claim, reason=reason, charged=False), "queued", reason)
        self._announce(claim.job_id)

    def postpone(self, claim: Claim, error: Problem) -> None:
        """Give the job back for a while because the worker cannot run it now. Raises as `release`."""
        reason, pause = error.code, self._settings.republish_seconds
        self._end(claim, lambda w: w.jobs.requeue(claim, reason=reason, seconds=pause, charged=False), "queued", reason)

    def _end(self, claim: Claim, write: Callable[[Work], None], outcome: str, reason: str = "") -> None:
        """Write the end of an attempt and count it; a cancel that came first has the last word."""
        try:
            self._work.retry(write, seconds=END_SECONDS, until_room=True)
        except LeaseLost:
            self.stop(claim)
            raise Cancelled from None
        self.attempts.count(claim.kind, outcome, reason)

    # for housekeeping

    def sweep(self, held: int | None) -> Swept:
        """Take up what others dropped: expired leases, forgotten ids. Safe at any time, in any number of processes.

        held: messages the broker still has; None if it does not respond.
        """
        recovered = sum(self._recovered(lapsed) for lapsed in self._work.retry(lambda w: w.jobs.lapsed(self._grace)))
        self.attempts.lost += recovered
        if held is None:
            return Swept(recovered, 0)
        pause = self._settings.republish_seconds
        forgotten = self._work.retry(lambda w: w.jobs.forgotten(held, pause))
        for job_id in forgotten:
            self._announce(job_id)
        return Swept(recovered, len(forgotten))

    def _recovered(self, lapsed: Lapsed) -> bool:
        """One row, one transaction. A database that blinks leaves the row to the next sweep."""
        error = Problem.of(WorkerLost())
        pause = self._backoff(lapsed.attempt)
        try:
            with self._work() as w:
                done = w.jobs.recover(lapsed, grace_seconds=self._grace, seconds=pause, error=error)
        except DBAPIError:
            log.warning("sweep_interrupted", job_id=str(lapsed.job_id), exc_info=True)
            return False
        if done:
            log.warning("lease_expired", job_id=str(lapsed.job_id), attempt=lapsed.attempt)
        return done

    @property
    def _grace(self) -> float:
        """Seconds a database must have been up before an expired lease says anything about its holder."""
        return 5 * self._settings.beat_seconds

    def _backoff(self, attempt: int) -> float:
        """Seconds before the attempt after this one: doubled each time, capped at 64 times the first."""
        return self._settings.retry_backoff_seconds * 2.0 ** min(attempt - 1, 6)


def _capable() -> Capable:
    return Capable(tuple(kinds()), tuple(catalogue()))


def _lists(curves: Mapping[str, Sequence[float]] | None) -> dict[str, list[float]]:
    return {name: list(values) for name, values in (curves or {}).items()}
