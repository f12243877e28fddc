"""Jobs as clients see them, from their rows."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session, load_only, undefer

from app.ml.contract.stage_clock import StageSeconds
from app.ml.operations import kinds
from app.schemas.jobs import Curve, Job, JobState, Transition
from app.schemas.problems import Problem
from app.store.jobs.job_tables import JobRow, JobTransitionRow

_SHOWN = load_only(
    JobRow.kind, JobRow.name, JobRow.state, JobRow.progress, JobRow.message, JobRow.attempt, JobRow.max_attempts,
    JobRow.created_at, JobRow.started_at, JobRow.finished_at, JobRow.dataset_id, JobRow.model, JobRow.version,
    JobRow.algorithm, JobRow.curves, JobRow.stages, JobRow.cores, JobRow.warnings, JobRow.error,
)  # fmt: skip


def read_jobs(
    session: Session,
    *conditions: ColumnElement[bool],
    order: Sequence[ColumnElement[Any]],
    limit: int,
    whole: bool = False,
) -> list[Job]:
    """`whole`: with their requests and their results, which may be large."""
    query = select(JobRow).options(_SHOWN).where(*conditions).order_by(*order).limit(limit)
    if whole:
        query = query.options(undefer(JobRow.request), undefer(JobRow.result))
    rows = session.scalars(query, execution_options={"populate_existing": True}).all()
    record = _transitions(session, [row.id for row in rows])
    ahead = _ahead(session, [row.id for row in rows if row.state == JobState.QUEUED])
    return [
        _job(row, ahead.get(row.id), record[row.id], (row.request or None, _result(row)) if whole else (None, None))
        for row in rows
    ]


def _result(row: JobRow) -> dict[str, Any] | None:
    """Kinds that this release can read: none of kinds that a later one knows."""
    return row.result if row.kind in kinds() else None


def _stages(row: JobRow) -> StageSeconds | None:
    """None before the first attempt, and of jobs of earlier releases."""
    if row.stages is None:
        return None
    return StageSeconds(**row.stages)


def _ahead(session: Session, ids: Sequence[UUID]) -> dict[UUID, int]:
    """Queued jobs → how many were queued before each: those before the first of them are counted once."""
    if not ids:
        return {}
    queue, first = select(JobRow.id).where(JobRow.state == JobState.QUEUED), min(ids)
    before = session.scalars(select(func.count()).where(JobRow.state == JobState.QUEUED, JobRow.id < first)).one()
    from_first = queue.where(JobRow.id >= first, JobRow.id <= max(ids)).order_by(JobRow.id)
    places = {job_id: before + number for number, job_id in enumerate(session.scalars(from_first))}
    return {job_id: places[job_id] for job_id in ids if job_id in places}


def _transitions(session: Session, ids: Sequence[UUID]) -> dict[UUID, list[Transition]]:
    record: dict[UUID, list[Transition]] = {job_id: [] for job_id in ids}
    lines = select(JobTransitionRow).where(JobTransitionRow.job_id.in_(ids)).order_by(JobTransitionRow.id)
    for line in session.scalars(lines):
        record[line.job_id].append(
            Transition(at=line.at, state=JobState(line.state), attempt=line.attempt, reason=line.reason)
        )
    return record


def _job(
    row: JobRow,
    queue_position: int | None,
    transitions: list[Transition],
    bodies: tuple[dict[str, Any] | None, dict[str, Any] | None],
) -> Job:
    """bodies: its request and its result, where they were read."""
    request, result = bodies
    return Job(
        id=row.id,
        kind=row.kind,
        name=row.name,
        state=JobState(row.state),
        progress=row.progress,
        message=row.message,
        attempt=row.attempt,
        max_attempts=row.max_attempts,
        created_at=row.created_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        queue_position=queue_position,
        dataset=row.dataset_id,
        model=row.model,
        version=row.version,
        algorithm=row.algorithm,
        request=request,
        result=result,
        transitions=transitions,
        stages=_stages(row),
        cores=row.cores,
        curves=[Curve(name=name, values=values) for name, values in row.curves.items()],
        warnings=row.warnings,
        error=Problem.model_validate(row.error) if row.error else None,
    )
