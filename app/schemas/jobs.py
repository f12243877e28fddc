"""Jobs on the wire. The train request is built from the catalogue: see `app.ml.training.TrainSpec`."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated
from uuid import UUID

from pydantic import Field, StringConstraints

from app.ml.training import TrainSpec
from app.schemas.problems import Problem
from app.wire import Wire

ModelName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_-]{1,100}$")]


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


class TrainRequest(TrainSpec):
    """Train one algorithm on one dataset; the result is a new version of the model."""

    model: ModelName = Field(description="The model that gets a new version; made if it does not exist.")
    dataset: UUID = Field(description="The id of an uploaded dataset.")
    time_limit_seconds: float = Field(3600, gt=0, description="The job ends as timed_out when it runs longer.")


class Transition(Wire):
    at: datetime
    state: JobState
    attempt: int
    reason: str | None = Field(None, description="A stable code, where there is more to say than the state.")


class Curve(Wire):
    """One monitored measure, a value per report of progress."""

    name: str
    values: list[float]


class CurvePoints(Wire):
    """New values of one monitored measure, told as they come."""

    name: str
    start: int = Field(description="Index of the first of these values within the curve.")
    values: list[float]


class JobProgress(Wire):
    progress: float = Field(ge=0, le=1)
    message: str


class Job(Wire):
    """A piece of work that was accepted, and where it stands."""

    id: UUID
    kind: str = Field(description="What sort of work: train, …")
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
    model: str | None = None
    version: int | None = Field(None, description="The version this job made.")
    algorithm: str | None = None
    transitions: list[Transition] = []
    curves: list[Curve] = []
    warnings: list[str] = []
    error: Problem | None = None


class JobPage(Wire):
    items: list[Job]
    next_cursor: str | None = None


class TrainEstimate(Wire):
    """The answer of a dry run that found no problem."""

    task: str
    features: list[str]
    rows: int
    memory_bytes: int = Field(description="Rough peak of the training process.")
    seconds: float = Field(description="Rough time from start to end.")
    warnings: list[str] = []
