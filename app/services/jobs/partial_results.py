"""Results of jobs that end before their end: from their stored units, and with the model of their checkpoint."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

import structlog

from app.ml.evaluation.report import Report
from app.ml.kinds.job import Kind, Outcome, Result, Trained
from app.ml.kinds.journal import EarlyEnd, StoredParts
from app.ml.operations import kinds
from app.schemas.jobs import JobState
from app.store.jobs.job_records import NO_EFFORT, Effort
from app.store.unit_of_work import Work

log = structlog.get_logger(__name__)
ENDED_BY: Mapping[JobState, EarlyEnd] = {
    JobState.CANCELLED: "cancel",
    JobState.TIMED_OUT: "limit",
    JobState.FAILED: "crash",
}


class VersionOwner(NamedTuple):
    """The job that makes a version, and how its bytes are stored."""

    job_id: UUID
    model: str | None
    dataset_id: UUID | None
    chunk_bytes: int


def add_version(w: Work, owner: VersionOwner, trained: Trained, effort: Effort = NO_EFFORT) -> int:
    """The number of the new version."""
    if owner.model is None:
        raise ValueError("A model is made for a name.")
    made = w.models.add_version(
        model=owner.model,
        job_id=owner.job_id,
        dataset_id=owner.dataset_id,
        blob=trained.blob,
        report=trained.report.model_copy(update=effort.described()),
        golden=trained.golden,
        chunk_bytes=owner.chunk_bytes,
    )
    w.training_rows.add(made.model, made.version, trained.seen, owner.chunk_bytes)
    w.version_references.add(made.model, made.version, trained.reference)
    w.quotas.demand(storage_bytes=0, model_versions=0)
    return made.version


def publish_best(w: Work, job_id: UUID, state: JobState, chunk_bytes: int) -> Mapping[str, Any]:
    """Columns of the job that ends in this state: `version`, `result` and `warnings`, as far as something is stored.

    In the transaction that ends the job. A failure to publish never keeps a job from its end.
    """
    try:
        with w.savepoint():
            return _published(w, job_id, state, chunk_bytes)
    except Exception:
        log.exception("partial_result_not_published", job_id=str(job_id))
        return {}


def _published(w: Work, job_id: UUID, state: JobState, chunk_bytes: int) -> Mapping[str, Any]:
    accepted = w.jobs.accepted(job_id)
    kind: Kind[Any] | None = None if accepted is None or accepted.kind not in kinds() else kinds()[accepted.kind].kind
    if accepted is None or kind is None or kind.partial is None:
        return {}
    outcomes, stored = w.job_parts.outcomes(job_id), w.job_parts.checkpoint(job_id)
    if not outcomes:
        return {}
    parts = StoredParts(outcomes, None if stored is None else stored[0]["note"], ENDED_BY[state])
    result: Result = kind.partial(kind.request.model_validate(accepted.request), parts)
    trained = None
    if stored is not None:
        head, *content = stored
        trained = Trained(content[0], Report.model_validate(head["report"]), head["golden"], *content[1:])
    outcome = Outcome(trained, result)
    if outcome.evaluation_rows is not None:
        outcome = outcome.used(w.uses.count(outcome.evaluation_rows))
    version = None
    if outcome.trained is not None:
        job = w.jobs.get(job_id)
        dataset_id = None if accepted.pinned.files else job.dataset
        version = add_version(w, VersionOwner(job_id, job.model, dataset_id, chunk_bytes), outcome.trained)
    described = None if outcome.result is None else outcome.result.model_dump(mode="json")
    return {"version": version, "result": described, "warnings": outcome.warnings}
