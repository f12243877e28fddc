"""Records that the repositories of jobs and leases take and return, besides those on the wire."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Self
from uuid import UUID

from app.ml.contract.stage_clock import StageSeconds
from app.schemas.jobs import Job, JobState


class Pinned(NamedTuple):
    """References that a job needs, down to the version: the same at every attempt."""

    datasets: tuple[UUID, ...] = ()
    models: tuple[tuple[str, int], ...] = ()
    """Names and versions."""
    algorithms: tuple[str, ...] = ()
    """A worker that lacks one of them leaves the job to others."""
    files: tuple[UUID, ...] = ()

    def written(self) -> dict[str, Any]:
        """The claim as JSON."""
        texts = {"datasets": [*map(str, self.datasets)], "files": [*map(str, self.files)]}
        return {**self._asdict(), **texts}

    @classmethod
    def read(cls, written: Mapping[str, Any]) -> Self:
        datasets, models = map(UUID, written["datasets"]), map(tuple, written["models"])
        files = tuple(map(UUID, written.get("files", ())))  # earlier releases had none
        return cls(tuple(datasets), tuple(models), tuple(written["algorithms"]), files)


def pinned_of(inputs: Mapping[str, Any], dataset_id: UUID | None) -> Pinned:
    """From the columns of a job's row."""
    return Pinned.read(inputs) if inputs else Pinned(() if dataset_id is None else (dataset_id,))


class Effort(NamedTuple):
    """Time and cores of an attempt so far."""

    stages: Mapping[str, float] | None = None
    """Seconds by stage; None: not known."""
    cores: int | None = None
    """Largest number of cores that computed at once."""

    def described(self) -> dict[str, Any]:
        """The fields of a report about it."""
        return {"stages": self.stages and StageSeconds(**self.stages), "cores": self.cores}

    def also(self, **seconds: float) -> Self:
        """With more seconds of some stages."""
        stages = dict(self.stages or {})
        return self._replace(stages=stages | {name: stages.get(name, 0.0) + more for name, more in seconds.items()})


NO_EFFORT = Effort()


class Capable(NamedTuple):
    """Capabilities of a worker's release."""

    kinds: tuple[str, ...]
    algorithms: tuple[str, ...]


class NewJob(NamedTuple):
    id: UUID
    kind: str
    request: dict[str, Any]
    request_hash: str
    request_id: str | None
    idempotency_key: str | None
    dataset_id: UUID | None
    model: str | None
    algorithm: str | None
    warnings: list[str]
    max_attempts: int
    time_limit_seconds: float
    inputs: dict[str, Any] = {}
    """`Pinned.written`; without it the job needs its dataset and its algorithm."""
    name: str | None = None
    traceparent: str | None = None


class Kept(NamedTuple):
    """The record under an idempotency key."""

    request_hash: str
    first_response: Job


class Accepted(NamedTuple):
    """A request as it was accepted, with what it rests on."""

    kind: str
    request: dict[str, Any]
    pinned: Pinned


class Claim(NamedTuple):
    """The right to run one attempt, for as long as the lease under `token` is renewed."""

    job_id: UUID
    token: UUID
    attempt: int
    max_attempts: int
    kind: str
    request: dict[str, Any]
    request_id: str | None
    traceparent: str | None
    dataset_id: UUID | None
    inputs: dict[str, Any]
    model: str | None
    time_limit_seconds: float
    project_id: UUID
    queued_seconds: float = 0.0
    """Time from the creation of the job to the claim."""
    spent_seconds: float = 0.0
    """Time from the start of the first attempt to the claim."""

    @property
    def pinned(self) -> Pinned:
        return pinned_of(self.inputs, self.dataset_id)


class ExpiredLease(NamedTuple):
    """A lease that nobody renewed in time."""

    job_id: UUID
    token: UUID
    state: JobState
    attempt: int
    max_attempts: int
    project_id: UUID
