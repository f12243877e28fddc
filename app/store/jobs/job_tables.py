"""Tables of jobs, their transitions and the workers that run them."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Identity, Index, LargeBinary, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from app.store.base.table_base import NOW, Base, Owned


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
        CheckConstraint("version is null or finished_at is not null", name="version"),
        CheckConstraint("result is null or finished_at is not null", name="result"),
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
    """The job's references, `app.store.jobs.job_records.Pinned`; empty in rows of releases that knew only trainings."""
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


class JobChunkRow(Owned, Base):
    """A chunk, as of a dataset, of the table that a running job makes."""

    __tablename__ = "job_chunks"

    job_id: Mapped[UUID] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True)
    first_row: Mapped[int] = mapped_column(BigInteger)
    rows: Mapped[int]
    payload: Mapped[bytes] = mapped_column(LargeBinary)


class JobUnitRow(Owned, Base):
    """A unit of work that a running job has done."""

    __tablename__ = "job_units"

    job_id: Mapped[UUID] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True)
    outcome: Mapped[dict[str, Any]]
    payload: Mapped[bytes] = mapped_column(LargeBinary, deferred=True)


class JobCheckpointRow(Owned, Base):
    """A part of the model that a running job could serve: its `head` as JSON, `blob`, `seen` or `reference`."""

    __tablename__ = "job_checkpoints"

    job_id: Mapped[UUID] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    part: Mapped[str] = mapped_column(primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True)
    payload: Mapped[bytes] = mapped_column(LargeBinary)


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
