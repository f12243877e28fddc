"""States of a job: every change is one compare-and-set and one line of its record, in one transaction.

Only the moves of `SOURCES` exist. All times are the database's own, so that no worker's clock decides anything.
"""

from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, select, update
from sqlalchemy.orm import Session

from app.schemas.jobs import JobState
from app.store.base.database_clock import NOW
from app.store.jobs.job_tables import JobRow, JobTransitionRow

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

READY = JobRow.state == JobState.QUEUED, JobRow.not_before <= NOW
"""A job that may be claimed now."""
LEASED = (JobState.RUNNING, JobState.CANCELLING)
"""States in which a worker has the job."""
UNLEASED: dict[str, Any] = {"lease_token": None, "lease_until": None, "lease_holder": None}
ENDED: dict[str, Any] = {**UNLEASED, "finished_at": NOW}
PLAIN = {"synchronize_session": False}
"""Execution options of an update: no object of the session is to follow it."""


def move(
    session: Session, to: JobState, *conditions: ColumnElement[bool], reason: str | None = None, **values: Any
) -> bool:
    """The only door into another state. False if no row fits the conditions."""
    moved = (
        update(JobRow)
        .where(JobRow.state.in_(SOURCES[to]), *conditions)
        .values(state=to, **values)
        .returning(JobRow.id, JobRow.attempt, JobRow.project_id)
    )
    row = session.execute(moved, execution_options=PLAIN).one_or_none()
    if row is not None:
        record(session, row.id, to, row.attempt, reason, project_id=row.project_id)
    return row is not None


def cancel(session: Session, job_id: UUID) -> None:
    """A queued job is cancelled, a running one begins to be; any other stays as it is."""
    mine = JobRow.id == job_id
    session.execute(select(JobRow.id).where(mine).with_for_update())  # both looks at one state
    if not move(session, JobState.CANCELLED, mine, JobRow.state == JobState.QUEUED, **ENDED):
        move(session, JobState.CANCELLING, mine)


def record(  # noqa: PLR0917  a line of the record
    session: Session,
    job_id: UUID,
    state: JobState,
    attempt: int,
    reason: str | None = None,
    project_id: UUID | None = None,
) -> None:
    """project_id: that of the job; None is that of the unit of work."""
    project = {} if project_id is None else {"project_id": project_id}
    session.add(JobTransitionRow(job_id=job_id, state=state, attempt=attempt, reason=reason, **project))
    session.flush()
