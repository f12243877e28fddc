"""Jobs: every change of state is one compare-and-set and one line of its record, in one transaction.

Only the moves of `SOURCES` exist. What runs is written under its lease alone: the token is the fence,
and all times are the database's own, so that no worker's clock decides anything.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, cast, func, or_, select, update
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Session

from app.errors import Fault, InvalidRequest, JobNotFound, LeaseLost
from app.ml.job import Result
from app.schemas.jobs import Job, JobPage, JobState
from app.schemas.problems import Problem
from app.store.claims import Capable, Claim, Kept, Lapsed, NewJob
from app.store.described import read_jobs
from app.store.paging import newest, of
from app.store.tables import DatasetRow, JobRow, JobTransitionRow

SOURCES = {
    JobState.RUNNING: {JobState.QUEUED},
    JobState.QUEUED: {JobState.RUNNING},
    JobState.CANCELLING: {JobState.RUNNING},
    JobState.SUCCEEDED: {JobState.RUNNING},
    JobState.FAILED: {JobState.RUNNING},
    JobState.TIMED_OUT: {JobState.RUNNING},
    JobState.CANCELLED: {JobState.QUEUED, JobState.CANCELLING},
}
"""State → the states it may be reached from."""

_NOW = func.clock_timestamp()
_QUEUE_LOCK = 0x7175657565  # "queue"


class JobRepository:
    def __init__(self, session: Session) -> None:
        self.session = session

    # accepting

    def hold_dataset(self, dataset_id: UUID) -> None:
        """Keep a dataset from being deleted until the end of the transaction; by then the job shows."""
        self.session.execute(
            select(DatasetRow.id).where(DatasetRow.id == dataset_id).with_for_update(key_share=True, read=True)
        )

    def lock_queue(self) -> None:
        """One submission at a time counts the queue and joins it, so the cap cannot be raced."""
        self.session.execute(select(func.pg_advisory_xact_lock(_QUEUE_LOCK)))

    def waiting(self) -> int:
        return self.session.scalars(select(func.count()).where(JobRow.state == JobState.QUEUED)).one()

    def kept(self, idempotency_key: str) -> Kept | None:
        columns = select(JobRow.request_hash, JobRow.first_response)
        found = self.session.execute(columns.where(JobRow.idempotency_key == idempotency_key)).one_or_none()
        return None if found is None else Kept(found[0], Job.model_validate(found[1]))

    def add(self, new: NewJob) -> Job:
        """Queued, and with its first response stored if it came with a key."""
        row = JobRow(**new._asdict(), state=JobState.QUEUED)
        row.published_at = self.session.scalars(select(_NOW)).one()
        self.session.add(row)
        self.session.flush()
        self._record(new.id, JobState.QUEUED, 0)
        job = self.get(new.id)
        if new.idempotency_key is not None:
            row.first_response = job.model_dump(mode="json")
            self.session.flush()
        return job

    # reading

    def find(self, job_id: UUID) -> Job | None:
        jobs = read_jobs(self.session, JobRow.id == job_id, order=(), limit=1, whole=True)
        return jobs[0] if jobs else None

    def get(self, job_id: UUID) -> Job:
        job = self.find(job_id)
        if job is None:
            raise JobNotFound
        return job

    def identify(self, reference: UUID | str) -> UUID:
        """The id itself, or that of the newest job of this name. Raises JobNotFound."""
        found = newest(self.session, reference, JobRow.name, JobRow.id)
        if found is None:
            raise JobNotFound
        return found

    def page(
        self, limit: int, cursor: str | None = None, *, state: JobState | None = None, name: str | None = None
    ) -> JobPage:
        """Newest first; the cursor is the last id of the page before."""
        filters = [
            (column, value) for column, value in ((JobRow.name, name), (JobRow.state, state)) if value is not None
        ]
        conditions, order = of(
            filters[:1], JobRow.id
        )  # a name has few jobs: of these, the state is looked at one by one
        also = [column == value for column, value in filters[1:]]
        if cursor is not None:
            also.append(JobRow.id < _id(cursor))
        jobs = read_jobs(self.session, *conditions, *also, order=order, limit=limit + 1)
        return JobPage(items=jobs[:limit], next_cursor=str(jobs[limit - 1].id) if len(jobs) > limit else None)

    # moving

    def claim(self, job_id: UUID, token: UUID, lease_seconds: float, able: Capable) -> Claim | None:
        """Take a queued job whose time has come; None if there is nothing to take.

        able: what this worker's release can do. Other jobs wait for a worker of another release.
        Safe to repeat with the same token: a claim whose commit was not confirmed is found again.
        """
        self._move(
            JobState.RUNNING,
            JobRow.id == job_id,
            JobRow.not_before <= _NOW,
            *_within(able),
            attempt=JobRow.attempt + 1,
            lease_token=token,
            lease_until=_NOW + timedelta(seconds=lease_seconds),
            started_at=func.coalesce(JobRow.started_at, _NOW),
            progress=0.0,
            message="",
            curves={},
        )
        columns = (
            JobRow.id, JobRow.lease_token, JobRow.attempt, JobRow.max_attempts, JobRow.kind, JobRow.request,
            JobRow.request_id, JobRow.traceparent, JobRow.dataset_id, JobRow.inputs, JobRow.model,
            JobRow.time_limit_seconds,
        )  # fmt: skip
        held = self.session.execute(select(*columns).where(*_lease(job_id, token))).one_or_none()
        return None if held is None else Claim(*held)

    def oldest(self, able: Capable) -> UUID | None:
        """The queued job that has waited longest and may run now."""
        queue = select(JobRow.id).where(JobRow.state.between(JobState.QUEUED, JobState.QUEUED))  # as `of`, oldest first
        ready = queue.where(JobRow.not_before <= _NOW, *_within(able))
        return self.session.scalar(ready.order_by(JobRow.state, JobRow.id).limit(1))

    def beat(
        self, claim: Claim, lease_seconds: float, progress: float, message: str, curves: dict[str, list[float]]
    ) -> JobState:
        """Renew the lease and say how far it is. Returns running or cancelling; raises LeaseLost."""
        renewed = (
            update(JobRow)
            .where(*_lease(claim.job_id, claim.token))
            .values(
                lease_until=_NOW + timedelta(seconds=lease_seconds), progress=progress, message=message, curves=curves
            )
            .returning(JobRow.state)
        )
        state = self.session.execute(renewed, execution_options=_PLAIN).scalar_one_or_none()
        if state is None:
            raise LeaseLost
        return JobState(state)

    def hold(self, claim: Claim) -> None:
        """Keep a running attempt as it is until the end of the transaction. Raises LeaseLost."""
        running = (*_lease(claim.job_id, claim.token), JobRow.state == JobState.RUNNING)
        if self.session.scalar(select(JobRow.id).where(*running).with_for_update()) is None:
            raise LeaseLost

    def succeed(
        self,
        claim: Claim,
        *,
        version: int | None = None,
        result: Result | None = None,
        warnings: Sequence[str],
        curves: dict[str, list[float]],
    ) -> None:
        """Raises LeaseLost, also when a cancel came first; so do the other ends of an attempt."""
        output: dict[str, Any] = {"progress": 1.0, "message": "", "curves": curves, "warnings": list(warnings)}
        found = {"version": version, "result": None if result is None else result.model_dump(mode="json")}
        self._fenced(claim, JobState.SUCCEEDED, **{**found, **output, **_ENDED})

    def fail(self, claim: Claim, state: JobState, error: Problem) -> None:
        """`state` is failed or timed_out."""
        self._fenced(claim, state, reason=error.code, error=error.model_dump(mode="json"), **_ENDED)

    def requeue(self, claim: Claim, *, reason: str, seconds: float = 0, charged: bool = True) -> None:
        """Back into the queue for another attempt, after `seconds`."""
        attempt = JobRow.attempt if charged else JobRow.attempt - 1
        self._fenced(claim, JobState.QUEUED, reason=reason, attempt=attempt, **_again(seconds))

    def finish_cancel(self, claim: Claim) -> None:
        """The attempt of a job in cancelling is over."""
        self._fenced(claim, JobState.CANCELLED, **_ENDED)

    def cancel(self, job_id: UUID) -> Job:
        """A queued job is cancelled, a running one begins to be; any other stays as it is. Raises JobNotFound."""
        mine = JobRow.id == job_id
        self.session.execute(select(JobRow.id).where(mine).with_for_update())  # both looks at one state
        if not self._move(JobState.CANCELLED, mine, JobRow.state == JobState.QUEUED, **_ENDED):
            self._move(JobState.CANCELLING, mine)
        return self.get(job_id)

    # sweeping

    def lapsed(self, grace_seconds: float, limit: int = 100) -> list[Lapsed]:
        """Leases that ran out. After a restart of the database the living have `grace_seconds` to renew theirs."""
        rows = self.session.scalars(
            select(JobRow).where(*_lapsed(grace_seconds)).order_by(JobRow.lease_until).limit(limit)
        )
        return [
            Lapsed(row.id, row.lease_token, JobState(row.state), row.attempt, row.max_attempts)
            for row in rows
            if row.lease_token is not None
        ]

    def recover(self, lapsed: Lapsed, *, grace_seconds: float, seconds: float, error: Problem) -> bool:
        """Queue it again, or end it; False if its lease is held again, or is another's by now."""
        mine = (*_lease(lapsed.job_id, lapsed.token), *_lapsed(grace_seconds))
        if lapsed.state is JobState.CANCELLING:
            return self._move(JobState.CANCELLED, *mine, reason=error.code, **_ENDED)
        if lapsed.attempt < lapsed.max_attempts:
            return self._move(JobState.QUEUED, *mine, reason=error.code, **_again(seconds))
        return self._move(JobState.FAILED, *mine, reason=error.code, error=error.model_dump(mode="json"), **_ENDED)

    def forgotten(self, held: int, seconds: float, limit: int = 1000) -> list[UUID]:
        """Queued jobs to announce again: those last announced `seconds` ago, or never since they came back.

        No more than there are beyond the `held` messages that the broker still has: a long queue is not
        a forgotten one. They count as announced now, so that other sweepers leave them alone.
        """
        ready = self.session.scalars(select(func.count()).where(*_READY)).one()
        stale = or_(JobRow.published_at.is_(None), JobRow.published_at < _NOW - timedelta(seconds=seconds))
        oldest = select(JobRow.id).where(*_READY, stale).order_by(JobRow.id)
        chosen = oldest.limit(max(0, min(limit, ready - held))).with_for_update(skip_locked=True)
        marked = update(JobRow).where(JobRow.id.in_(chosen.scalar_subquery())).values(published_at=_NOW)
        return sorted(self.session.scalars(marked.returning(JobRow.id), execution_options=_PLAIN))

    def _fenced(self, claim: Claim, state: JobState, *, reason: str | None = None, **values: Any) -> None:
        if not self._move(state, *_lease(claim.job_id, claim.token), reason=reason, **values):
            raise LeaseLost

    def _move(self, to: JobState, *conditions: ColumnElement[bool], reason: str | None = None, **values: Any) -> bool:
        """The only door into another state. False if no row fits the conditions."""
        moved = (
            update(JobRow)
            .where(JobRow.state.in_(SOURCES[to]), *conditions)
            .values(state=to, **values)
            .returning(JobRow.id, JobRow.attempt)
        )
        row = self.session.execute(moved, execution_options=_PLAIN).one_or_none()
        if row is not None:
            self._record(row.id, to, row.attempt, reason)
        return row is not None

    def _record(self, job_id: UUID, state: JobState, attempt: int, reason: str | None = None) -> None:
        self.session.add(JobTransitionRow(job_id=job_id, state=state, attempt=attempt, reason=reason))
        self.session.flush()


_PLAIN = {"synchronize_session": False}
_READY = (JobRow.state == JobState.QUEUED, JobRow.not_before <= _NOW)
_UNLEASED: dict[str, Any] = {"lease_token": None, "lease_until": None}
_ENDED: dict[str, Any] = {**_UNLEASED, "finished_at": _NOW}


def _again(seconds: float) -> dict[str, Any]:
    return {**_UNLEASED, "not_before": _NOW + timedelta(seconds=seconds), "published_at": None, "progress": 0.0}


def _lapsed(grace_seconds: float) -> tuple[ColumnElement[bool], ...]:
    awake = func.pg_postmaster_start_time() < _NOW - timedelta(seconds=grace_seconds)
    return JobRow.state.in_([JobState.RUNNING, JobState.CANCELLING]), JobRow.lease_until < _NOW, awake


def _lease(job_id: UUID, token: UUID) -> tuple[ColumnElement[bool], ...]:
    return JobRow.id == job_id, JobRow.lease_token == token


def _within(able: Capable) -> tuple[ColumnElement[bool], ...]:
    """Jobs that a worker can run."""
    needed = func.coalesce(JobRow.inputs["algorithms"], cast([], JSONB))
    algorithm = or_(JobRow.algorithm.is_(None), JobRow.algorithm.in_(able.algorithms))
    return JobRow.kind.in_(able.kinds), algorithm, needed.contained_by(list(able.algorithms))


def _id(cursor: str) -> UUID:
    try:
        return UUID(cursor)
    except ValueError:
        raise InvalidRequest(faults=[Fault("/query/cursor", "This is not a cursor of a former page.")]) from None
