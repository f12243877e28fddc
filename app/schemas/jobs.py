"""Jobs on the wire. What each kind of work is asked with and answers is in its own file: see `app.ml.operations`."""

from datetime import datetime
from enum import StrEnum
from uuid import UUID

from pydantic import Field

from app.ml.operations import AnyResult
from app.schemas.problems import Problem
from app.wire import Wire


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
    reason: str | None = Field(None, description="A stable code, where there is more to say than the state.")


class Curve(Wire):
    """One monitored measure, a value per report of progress."""

    name: str
    values: list[float]


class CurvePoints(Wire):
    """New values of one monitored measure."""

    name: str = Field(description="Name of the measure.")
    start: int = Field(description="Index of the first of these values within the curve.")
    values: list[float] = Field(description="Values from there on, one for each report of progress.")


class JobProgress(Wire):
    """How far a job is."""

    progress: float = Field(ge=0, le=1, description="Share of the work that is done.")
    message: str = Field(description="Name of the present step.")


class Job(Wire):
    """A piece of work that was accepted, and where it stands."""

    id: UUID
    kind: str = Field(description="What sort of work: train, …")
    name: str | None = Field(None, description="The name given at submission; null: none was given.")
    state: JobState
    progress: float = Field(ge=0, le=1)
    message: str
    attempt: int = Field(description="Attempts begun so far.")
    max_attempts: int
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    queue_position: int | None = Field(None, description="Jobs ahead of this one; only while queued.")
    dataset: UUID | None = None
    model: str | None = Field(None, description="The model it makes a version of, or is about.")
    version: int | None = Field(None, description="The version this job made.")
    result: AnyResult | None = Field(
        None,
        description="Result of the job; only in `GET /v1/jobs/{job_id}`, not in lists. Null: there is none, "
        "or not yet.",
    )
    algorithm: str | None = None
    transitions: list[Transition] = []
    curves: list[Curve] = []
    warnings: list[str] = []
    error: Problem | None = None


class JobPage(Wire):
    items: list[Job]
    next_cursor: str | None = None
