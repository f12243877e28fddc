"""The tables. Rows never leave `app.store`: repositories hand out schema objects."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ForeignKey,
    Identity,
    Index,
    LargeBinary,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from app.store.table_base import NOW, Base, Owned, of_model, of_version


class DatasetRow(Owned, Base):
    __tablename__ = "datasets"
    __table_args__ = (Index("ix_datasets_name", "name", "id"), Index("ix_datasets_project_id_id", "project_id", "id"))

    id: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str]
    file_format: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    rows: Mapped[int] = mapped_column(BigInteger)
    digest: Mapped[str]
    columns: Mapped[list[Any]]
    """Data sheets, `app.schemas.datasets.Column` each."""
    reading: Mapped[dict[str, Any] | None]
    """An `app.schemas.datasets.FileReading`; null for datasets of earlier releases."""
    warnings: Mapped[list[Any]] = mapped_column(server_default=text("'[]'"))


class DatasetChunkRow(Owned, Base):
    """A few MiB of rows as one compressed Arrow IPC stream."""

    __tablename__ = "dataset_chunks"

    dataset_id: Mapped[UUID] = mapped_column(ForeignKey("datasets.id", ondelete="CASCADE"), primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True)
    first_row: Mapped[int] = mapped_column(BigInteger)
    rows: Mapped[int]
    payload: Mapped[bytes] = mapped_column(LargeBinary)


class FileRow(Owned, Base):
    """A file that a job will read."""

    __tablename__ = "files"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    digest: Mapped[str]


class FileChunkRow(Owned, Base):
    """A few MiB of its bytes."""

    __tablename__ = "file_chunks"

    file_id: Mapped[UUID] = mapped_column(ForeignKey("files.id", ondelete="CASCADE"), primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True)
    payload: Mapped[bytes] = mapped_column(LargeBinary)


class JobRow(Owned, Base):
    """The row is the job: the broker only carries its id."""

    __tablename__ = "jobs"
    __table_args__ = (
        CheckConstraint(
            "state in ('queued','running','cancelling','succeeded','failed','cancelled','timed_out')", name="state"
        ),
        CheckConstraint("(lease_token is null) = (state not in ('running','cancelling'))", name="lease"),
        CheckConstraint("(lease_until is null) = (lease_token is null)", name="lease_until"),
        CheckConstraint("(finished_at is null) = (state in ('queued','running','cancelling'))", name="finished"),
        CheckConstraint("version is null or state = 'succeeded'", name="version"),
        CheckConstraint("result is null or state = 'succeeded'", name="result"),
        UniqueConstraint("project_id", "idempotency_key"),
        # The list of a state, the queue in its order, and counts by kind: none reads another row.
        Index("ix_jobs_state", "state", "id", postgresql_include=["kind"]),
        Index("ix_jobs_name", "name", "id", postgresql_where=text("name is not null")),
        Index("ix_jobs_dataset", "dataset_id"),
        Index("ix_jobs_project_id_id", "project_id", "id"),
        Index("ix_jobs_project_id_state_id", "project_id", "state", "id"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    kind: Mapped[str]
    name: Mapped[str | None]
    """Given by the caller; not unique: it means the newest."""
    state: Mapped[str]
    request: Mapped[dict[str, Any]]
    """The validated request, as it was accepted."""
    request_id: Mapped[str | None]
    """Id of the HTTP request, so that one id joins the logs."""
    traceparent: Mapped[str | None]
    """W3C trace context of the HTTP request; null: it had none."""
    idempotency_key: Mapped[str | None]
    request_hash: Mapped[str]
    first_response: Mapped[dict[str, Any] | None] = mapped_column("first_answer")
    """The first response to the client, if it gave a key: a replay returns the same."""
    inputs: Mapped[dict[str, Any]] = mapped_column(server_default=text("'{}'"))
    """The job's references, `app.store.job_records.Pinned`; empty in rows of releases that knew only trainings."""
    dataset_id: Mapped[UUID | None]
    """The first of its datasets."""
    model: Mapped[str | None]
    version: Mapped[int | None]
    algorithm: Mapped[str | None]
    """Algorithm of a training. Releases that know no other kind claim by it alone, so other kinds have none."""
    result: Mapped[dict[str, Any] | None] = mapped_column(deferred=True)
    progress: Mapped[float] = mapped_column(server_default=text("0"))
    message: Mapped[str] = mapped_column(server_default=text("''"))
    curves: Mapped[dict[str, Any]] = mapped_column(server_default=text("'{}'"))
    """Measure name → list of values."""
    stages: Mapped[dict[str, Any] | None]
    """Seconds of each stage of the last attempt; null: not known."""
    cores: Mapped[int | None]
    """Largest number of cores that computed for it at once."""
    warnings: Mapped[list[Any]] = mapped_column(server_default=text("'[]'"))
    error: Mapped[dict[str, Any] | None]
    attempt: Mapped[int] = mapped_column(server_default=text("0"))
    max_attempts: Mapped[int]
    time_limit_seconds: Mapped[float]
    lease_token: Mapped[UUID | None]
    lease_until: Mapped[datetime | None]
    lease_holder: Mapped[UUID | None]
    """The process that has the lease; null in leases of releases that did not write it."""
    not_before: Mapped[datetime] = mapped_column(server_default=NOW)
    """Backoff: nobody claims it earlier."""
    published_at: Mapped[datetime | None]
    """When it was last announced; null: it waits for the sweeper to announce it."""
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]


class JobTransitionRow(Owned, Base):
    __tablename__ = "job_transitions"
    __table_args__ = (Index("ix_job_transitions_project_id_at", "project_id", "at"),)

    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    job_id: Mapped[UUID] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), index=True)
    at: Mapped[datetime] = mapped_column(server_default=NOW)
    state: Mapped[str]
    attempt: Mapped[int]
    reason: Mapped[str | None]


class UseRow(Owned, Base):
    """Number of evaluations of a model on the same rows. It outlives the dataset: the same file has the same digest."""

    __tablename__ = "uses"

    data_digest: Mapped[str] = mapped_column(primary_key=True)
    rows: Mapped[str] = mapped_column(primary_key=True)
    times: Mapped[int] = mapped_column(BigInteger)


class ModelRow(Owned, Base):
    __tablename__ = "models"

    name: Mapped[str] = mapped_column(primary_key=True)
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)
    last_version: Mapped[int] = mapped_column(server_default=text("0"))
    """Only ever grows: a deleted version's number does not come back."""


class ModelVersionRow(Owned, Base):
    """One immutable version: never updated."""

    __tablename__ = "model_versions"
    __table_args__ = (of_model(),)

    model: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    job_id: Mapped[UUID | None] = mapped_column(unique=True)
    """The job that made it; null: a session did."""
    dataset_id: Mapped[UUID | None]
    session_id: Mapped[UUID | None]
    """The session it was published from; it may be gone."""
    dataset_digest: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)
    algorithm: Mapped[str]
    task: Mapped[str]
    parameters: Mapped[dict[str, Any]]
    target: Mapped[str | None]
    classes: Mapped[list[Any] | None]
    inputs: Mapped[list[Any]]
    receipt: Mapped[dict[str, Any]]
    report: Mapped[dict[str, Any]]
    golden: Mapped[dict[str, Any]]
    """A few rows and the model's predictions for them when it was fitted."""
    digest: Mapped[str] = mapped_column(index=True)
    size_bytes: Mapped[int] = mapped_column(BigInteger)


class ModelChunkRow(Owned, Base):
    """A few MiB of the version's bytes."""

    __tablename__ = "model_chunks"
    __table_args__ = (of_version(),)

    model: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True)
    payload: Mapped[bytes] = mapped_column(LargeBinary)


class JobChunkRow(Owned, Base):
    """A chunk, as of a dataset, of the table that a running job makes."""

    __tablename__ = "job_chunks"

    job_id: Mapped[UUID] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True)
    first_row: Mapped[int] = mapped_column(BigInteger)
    rows: Mapped[int]
    payload: Mapped[bytes] = mapped_column(LargeBinary)


class TrainingRowChunkRow(Owned, Base):
    """A few MiB of the hashes of the rows that the version has learned from."""

    __tablename__ = "training_row_chunks"
    __table_args__ = (of_version(),)

    model: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True)
    payload: Mapped[bytes] = mapped_column(LargeBinary)


class SessionRow(Owned, Base):
    """An online session: its whole state in one row, which does not grow with its rounds."""

    __tablename__ = "sessions"
    __table_args__ = (UniqueConstraint("project_id", "idempotency_key"),)

    id: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)
    updated_at: Mapped[datetime] = mapped_column(server_default=NOW)
    spec: Mapped[dict[str, Any]]
    """The validated request."""
    request_hash: Mapped[str]
    idempotency_key: Mapped[str | None]
    """That of the request that opened it."""
    revision: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    """Requests that were learned: whoever writes the next one names it."""
    tally: Mapped[dict[str, Any]]
    """An `app.schemas.sessions.RoundCounts`."""
    state: Mapped[bytes] = mapped_column(LargeBinary, deferred=True)
    keys: Mapped[dict[str, Any]] = mapped_column(server_default=text("'{}'"), deferred=True)
    """Idempotency keys of the last requests, each with the revision it made and the hash of its body."""
    last_hash: Mapped[str | None] = mapped_column(deferred=True)
    """That of the body of the last request."""
    last_response: Mapped[dict[str, Any] | None] = mapped_column(deferred=True)


class AliasRow(Owned, Base):
    __tablename__ = "aliases"
    __table_args__ = (of_model(), of_version(ondelete=None))

    model: Mapped[str] = mapped_column(primary_key=True)
    alias: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[int]
    revision: Mapped[int] = mapped_column(BigInteger)
    """Grows by one with each move: the ETag."""
    updated_at: Mapped[datetime] = mapped_column(server_default=NOW)


class AliasMoveRow(Owned, Base):
    """The whole record of an alias's moves; it outlives the alias."""

    __tablename__ = "alias_moves"
    __table_args__ = (Index("ix_alias_moves_alias", "model", "alias", "id"),)

    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    model: Mapped[str]
    alias: Mapped[str]
    at: Mapped[datetime] = mapped_column(server_default=NOW)
    version: Mapped[int]
    previous_version: Mapped[int | None]
    request_id: Mapped[str | None]


class WorkerRow(Base):
    """A worker that has not left. Its job and its lease are in the job's row; this one is only to be looked at."""

    __tablename__ = "workers"

    name: Mapped[str] = mapped_column(primary_key=True)
    seen_at: Mapped[datetime] = mapped_column(server_default=NOW)
    holder: Mapped[UUID | None]
    """The process of this name, as `JobRow.lease_holder` has it."""
    kernels_left_seconds: Mapped[float] = mapped_column(server_default="0")
    """Time that its kernels will take that are not compiled yet."""
    compiling: Mapped[str | None]
    """The same in words; null: all are compiled."""
