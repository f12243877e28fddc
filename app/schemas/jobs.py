"""Wire schemas of jobs. The request and result of each kind of job are in its own file: see `app.ml.operations`."""

from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, Union
from uuid import UUID

from pydantic import Field
from typing_extensions import TypeAliasType

from app.base.wire import Wire
from app.ml.contract.stage_clock import StageSeconds
from app.ml.kinds.job import Result
from app.ml.operations import kinds
from app.schemas.problems import Problem

if TYPE_CHECKING:
    AnyResult: TypeAlias = Result
else:
    _results = tuple(entry.kind.result for entry in kinds().values() if entry.kind.result)
    # One member per file that has a result, distinguished by `kind`; a union of one is no union.
    AnyResult = TypeAliasType(
        "JobResult",
        Annotated[Union[_results], Field(discriminator="kind")]  # noqa: UP007 - made from a tuple
        if len(_results) > 1
        else Union[_results or (Result,)],  # noqa: UP007 - as above
    )


class JobState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    CANCELLING = "cancelling"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"

    @property
    def terminal(self) -> bool:
        return self in {JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED, JobState.TIMED_OUT}


class Transition(Wire):
    """A change of a job's state."""

    at: datetime = Field(description="Time of the change.")
    state: JobState = Field(description="State after it.")
    attempt: int = Field(description="Number of attempts begun by then.")
    reason: str | None = Field(None, description="A stable code, where there is more to report than the state.")


class Curve(Wire):
    """One monitored measure, a value per report of progress."""

    name: str = Field(description="Name of the curve.")
    values: list[float] = Field(description="Values of the curve, one for each step.")


class CurvePoints(Wire):
    """New values of one monitored measure."""

    name: str = Field(description="Name of the measure.")
    start: int = Field(description="Index of the first of these values within the curve.")
    values: list[float] = Field(description="Values from there on, one for each report of progress.")


class JobProgress(Wire):
    """Progress of a job."""

    progress: float = Field(ge=0, le=1, description="Share of the work that is done.")
    message: str = Field(description="Name of the present step.")


class Job(Wire):
    """Job: a request that was accepted, and its state."""

    id: UUID = Field(description="Id of the job.")
    kind: str = Field(description="Kind of job, such as train, search or evaluate.")
    name: str | None = Field(None, description="The name given at submission; null: none was given.")
    state: JobState = Field(description="State of the job.")
    progress: float = Field(ge=0, le=1, description="Share that is done, from 0 to 1.")
    message: str = Field(description="Sentence on what the job does now; null: none.")
    attempt: int = Field(description="Attempts begun so far.")
    max_attempts: int = Field(description="Largest number of attempts.")
    created_at: datetime = Field(description="Time of creation, in UTC.")
    started_at: datetime | None = Field(
        None, description="Time of the start of the current attempt, in UTC; null: it has not started."
    )
    finished_at: datetime | None = Field(None, description="Time of its end, in UTC; null: it has not ended.")
    queue_position: int | None = Field(None, description="Jobs ahead of this one; only while queued.")
    dataset: UUID | None = Field(None, description="Id of the dataset; null where the job has none.")
    model: str | None = Field(None, description="The model it makes a version of, or is about.")
    version: int | None = Field(None, description="The version this job made.")
    request: dict[str, Any] | None = Field(
        None,
        description="Request of the job as it was accepted, with the values that were chosen by default; only in "
        "`GET /v1/jobs/{job_id}`. Null: elsewhere, and of jobs that were submitted without a body.",
    )
    result: AnyResult | None = Field(
        None,
        description="Result of the job; only in `GET /v1/jobs/{job_id}`, not in lists. Null: there is none, "
        "or not yet.",
    )
    algorithm: str | None = Field(None, description="Name of the algorithm; null for kinds of job without one.")
    transitions: list[Transition] = Field([], description="Changes of state, oldest first.")
    stages: StageSeconds | None = Field(
        None,
        description="Seconds of each stage of the last attempt so far; null before the first report of one, and of "
        "jobs of earlier releases.",
    )
    cores: int | None = Field(
        None,
        description="Largest number of processor cores that computed for the last attempt at once; null as `stages`.",
    )
    curves: list[Curve] = Field([], description="Training curves so far.")
    warnings: list[str] = Field(
        [], description="Sentences on what a careful reader should know; empty where there is none."
    )
    error: Problem | None = Field(None, description="Problem that ended the job; null: it has not failed.")


class JobPage(Wire):
    """Page of jobs, newest first."""

    items: list[Job] = Field(description="Items of this page.")
    next_cursor: str | None = Field(None, description="Cursor of the next page; null on the last page.")
