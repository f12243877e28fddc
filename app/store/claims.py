"""What the repository of jobs takes and hands out, besides what is on the wire."""

from typing import Any, NamedTuple
from uuid import UUID

from app.schemas.jobs import Job, JobState


class NewJob(NamedTuple):
    id: UUID
    kind: str
    request: dict[str, Any]
    request_hash: str
    request_id: str | None
    idempotency_key: str | None
    dataset_id: UUID
    model: str
    algorithm: str
    warnings: list[str]
    max_attempts: int
    time_limit_seconds: float


class Kept(NamedTuple):
    """What is remembered under an idempotency key."""

    request_hash: str
    first_answer: Job


class Claim(NamedTuple):
    """The right to run one attempt, for as long as the lease under `token` is renewed."""

    job_id: UUID
    token: UUID
    attempt: int
    max_attempts: int
    request: dict[str, Any]
    request_id: str | None
    dataset_id: UUID
    model: str
    time_limit_seconds: float


class Lapsed(NamedTuple):
    """A lease nobody renewed."""

    job_id: UUID
    token: UUID
    state: JobState
    attempt: int
    max_attempts: int
