"""Leases of running jobs: claimed, renewed, ended, and recovered when they expire.

What runs is written under its lease alone: the token is the fence. A worker that is gone renews nothing, its lease
expires, and the job is queued again or ended.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Float, cast, exists, func, or_, select, true, update
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Session

from app.base.errors import LeaseLost
from app.ml.kinds.job import Result
from app.schemas.jobs import JobState
from app.schemas.problems import Problem
from app.store.base.database_clock import NOW
from app.store.base.project_table import ProjectRow
from app.store.jobs.job_records import NO_EFFORT, Capable, Claim, Effort, ExpiredLease
from app.store.jobs.job_states import ENDED, LEASED, PLAIN, READY, UNLEASED, move
from app.store.jobs.job_tables import JobRow, WorkerRow

NOTHING: Mapping[str, Any] = MappingProxyType({})
STARVED = "worker_starved"
"""Reason of an attempt that did not count: its worker lives, and had no time to renew its lease."""


class LeaseRepository:
    def __init__(self, session: Session) -> None:
        self.session = session

    def claim(
        self, job_id: UUID, token: UUID, lease_seconds: float, able: Capable, holder: UUID | None = None
    ) -> Claim | None:
        """Take a queued job whose time has come; None if there is nothing to take.

        able: what this worker's release can do. Other jobs wait for a worker of another release.
        holder: this process, as it signs the registry of workers.
        Safe to repeat with the same token: a claim whose commit was not confirmed is found again.
        """
        move(
            self.session,
            JobState.RUNNING,
            JobRow.id == job_id,
            JobRow.not_before <= NOW,
            *_within(able),
            attempt=JobRow.attempt + 1,
            lease_token=token,
            lease_until=NOW + timedelta(seconds=lease_seconds),
            lease_holder=holder,
            started_at=func.coalesce(JobRow.started_at, NOW),
            progress=0.0,
            message="",
            curves={},
            stages=None,
            cores=None,
        )
        claimed = JobRow.lease_until - timedelta(seconds=lease_seconds)
        columns = (
            JobRow.id, JobRow.lease_token, JobRow.attempt, JobRow.max_attempts, JobRow.kind, JobRow.request,
            JobRow.request_id, JobRow.traceparent, JobRow.dataset_id, JobRow.inputs, JobRow.model,
            JobRow.time_limit_seconds, JobRow.project_id,
            cast(func.extract("epoch", claimed - JobRow.created_at), Float),
            cast(func.greatest(func.extract("epoch", claimed - JobRow.started_at), 0), Float),
        )  # fmt: skip
        held = self.session.execute(select(*columns).where(*_lease(job_id, token))).one_or_none()
        return None if held is None else Claim(*held)

    def next(self, able: Capable) -> UUID | None:
        """The queued job to run: of the projects below their quota, that with the fewest running; the oldest of it."""
        running = (
            select(func.count()).where(JobRow.project_id == ProjectRow.id, JobRow.state.in_(LEASED)).scalar_subquery()
        )
        oldest = select(JobRow.id).where(JobRow.project_id == ProjectRow.id, *READY, *_within(able))
        head = oldest.order_by(JobRow.id).limit(1).lateral()
        quota = ProjectRow.quotas["running_jobs"].as_integer()
        chosen = select(head.c.id).join_from(ProjectRow, head, true()).where(or_(quota.is_(None), running < quota))
        return self.session.scalar(chosen.order_by(running, head.c.id).limit(1))

    def held_back(self, project_id: UUID) -> UUID | None:
        """The oldest queued job of a project in which not all may run at a time."""
        limited = ProjectRow.id == project_id, ProjectRow.quotas["running_jobs"].as_integer().is_not(None)
        queue = select(JobRow.id).join(ProjectRow, ProjectRow.id == JobRow.project_id).where(*limited, *READY)
        return self.session.scalar(queue.order_by(JobRow.id).limit(1))

    def beat(
        self,
        claim: Claim,
        lease_seconds: float,
        progress: float,
        message: str,
        *,
        curves: dict[str, list[float]],
        effort: Effort = NO_EFFORT,
    ) -> JobState:
        """Renew the lease and report its progress. Returns running or cancelling; raises LeaseLost."""
        renewed = (
            update(JobRow)
            .where(*_lease(claim.job_id, claim.token))
            .values(
                lease_until=NOW + timedelta(seconds=lease_seconds),
                progress=progress,
                message=message,
                curves=curves,
                **_written(effort),
            )
            .returning(JobRow.state)
        )
        state = self.session.execute(renewed, execution_options=PLAIN).scalar_one_or_none()
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
        effort: Effort = NO_EFFORT,
    ) -> None:
        """Raises LeaseLost, also when a cancel came first; so do the other ends of an attempt."""
        output: dict[str, Any] = {"progress": 1.0, "message": "", "curves": curves, "warnings": list(warnings)}
        outcome = {"version": version, "result": None if result is None else result.model_dump(mode="json")}
        self._fenced(claim, JobState.SUCCEEDED, **{**outcome, **output, **_written(effort), **ENDED})

    def fail(self, claim: Claim, state: JobState, error: Problem, stored: Mapping[str, Any] = NOTHING) -> None:
        """`state` is failed or timed_out. stored: columns of what is kept of it."""
        self._fenced(claim, state, reason=error.code, error=error.model_dump(mode="json"), **stored, **ENDED)

    def requeue(self, claim: Claim, *, reason: str, seconds: float = 0, charged: bool = True) -> None:
        """Back into the queue for another attempt, after `seconds`."""
        attempt = JobRow.attempt if charged else JobRow.attempt - 1
        self._fenced(claim, JobState.QUEUED, reason=reason, attempt=attempt, **_again(seconds))

    def finish_cancel(self, claim: Claim, stored: Mapping[str, Any] = NOTHING) -> None:
        """The attempt of a job in cancelling is over. stored: as of `fail`."""
        self._fenced(claim, JobState.CANCELLED, **stored, **ENDED)

    # expiry

    def expired(self, grace_seconds: float, limit: int = 100) -> list[ExpiredLease]:
        """Leases that ran out. After a restart of the database the living have `grace_seconds` to renew theirs."""
        rows = self.session.scalars(
            select(JobRow).where(*_expired(grace_seconds)).order_by(JobRow.lease_until).limit(limit)
        )
        return [
            ExpiredLease(row.id, row.lease_token, JobState(row.state), row.attempt, row.max_attempts, row.project_id)
            for row in rows
            if row.lease_token is not None
        ]

    def recover(
        self,
        lease: ExpiredLease,
        *,
        grace_seconds: float,
        seconds: float,
        error: Problem,
        stored: Callable[[JobState], Mapping[str, Any]] = lambda _: NOTHING,
    ) -> bool:
        """Queue it again, or end it; False if its lease is held again, or is another's by now.

        stored: columns of what is kept of a job that ends in this state.

        An attempt whose holder was seen after its lease ran out does not count: that worker was starved, not dead.
        """
        mine = (*_lease(lease.job_id, lease.token), *_expired(grace_seconds))
        if lease.state is JobState.CANCELLING:
            return self._end(JobState.CANCELLED, mine, stored, reason=error.code)
        again = {**_again(seconds), "attempt": JobRow.attempt - 1}
        if move(self.session, JobState.QUEUED, *mine, *_starved(), reason=STARVED, **again):
            return True
        if lease.attempt < lease.max_attempts:
            return move(self.session, JobState.QUEUED, *mine, reason=error.code, **_again(seconds))
        described = error.model_dump(mode="json")
        return self._end(JobState.FAILED, mine, stored, reason=error.code, error=described)

    def _end(
        self,
        state: JobState,
        mine: Sequence[ColumnElement[bool]],
        stored: Callable[[JobState], Mapping[str, Any]],
        **values: Any,
    ) -> bool:
        held = select(JobRow.id).where(JobRow.state.in_(LEASED), *mine).with_for_update(skip_locked=True)
        if self.session.scalar(held) is None:
            return False
        return move(self.session, state, *mine, **values, **stored(state), **ENDED)

    def _fenced(self, claim: Claim, state: JobState, *, reason: str | None = None, **values: Any) -> None:
        if not move(self.session, state, *_lease(claim.job_id, claim.token), reason=reason, **values):
            raise LeaseLost


def _written(effort: Effort) -> dict[str, Any]:
    return {"stages": effort.stages and dict(effort.stages), "cores": effort.cores}


def _again(seconds: float) -> dict[str, Any]:
    return {**UNLEASED, "not_before": NOW + timedelta(seconds=seconds), "published_at": None, "progress": 0.0}


def _expired(grace_seconds: float) -> tuple[ColumnElement[bool], ...]:
    awake = func.pg_postmaster_start_time() < NOW - timedelta(seconds=grace_seconds)
    return JobRow.state.in_(LEASED), JobRow.lease_until < NOW, awake


def _starved() -> tuple[ColumnElement[bool], ...]:
    """Jobs whose holder lives, and that have not had the time of all their attempts yet."""
    holder_lives = exists().where(WorkerRow.holder == JobRow.lease_holder, WorkerRow.seen_at > JobRow.lease_until)
    all_attempts = func.make_interval(0, 0, 0, 0, 0, 0, JobRow.max_attempts * JobRow.time_limit_seconds)
    return holder_lives, JobRow.started_at + all_attempts > NOW


def _lease(job_id: UUID, token: UUID) -> tuple[ColumnElement[bool], ...]:
    return JobRow.id == job_id, JobRow.lease_token == token


def _within(able: Capable) -> tuple[ColumnElement[bool], ...]:
    """Jobs that a worker can run."""
    needed = func.coalesce(JobRow.inputs["algorithms"], cast([], JSONB))
    algorithm = or_(JobRow.algorithm.is_(None), JobRow.algorithm.in_(able.algorithms))
    return JobRow.kind.in_(able.kinds), algorithm, needed.contained_by(list(able.algorithms))
