"""Tables of models: versions, aliases, names of clusters, and what versions have learned from."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, Identity, Index, LargeBinary, text
from sqlalchemy.orm import Mapped, mapped_column

from app.store.base.table_base import NOW, Base, Owned, of_model, of_version


class ModelRow(Owned, Base):
    __tablename__ = "models"

    name: Mapped[str] = mapped_column(primary_key=True)
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)
    last_version: Mapped[int] = mapped_column(server_default=text("0"))
    """Only ever grows: a deleted version's number does not come back."""


class ModelVersionRow(Owned, Base):
    """One immutable version: never updated."""

    __tablename__ = "model_versions"
    __table_args__ = (
        of_model(),
        Index("ix_model_versions_project_id_created_at", "project_id", "created_at", "model", "version"),
        Index("ix_model_versions_dataset", "dataset_id", "created_at", "model", "version"),
    )

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


class TrainingRowChunkRow(Owned, Base):
    """A few MiB of the hashes of the rows that the version has learned from."""

    __tablename__ = "training_row_chunks"
    __table_args__ = (of_version(),)

    model: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True)
    payload: Mapped[bytes] = mapped_column(LargeBinary)


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


class UseRow(Owned, Base):
    """Number of evaluations of a model on the same rows. It outlives the dataset: the same file has the same digest."""

    __tablename__ = "uses"

    data_digest: Mapped[str] = mapped_column(primary_key=True)
    rows: Mapped[str] = mapped_column(primary_key=True)
    times: Mapped[int] = mapped_column(BigInteger)


class ClusterNamesRow(Owned, Base):
    """All names of the clusters of a version, as a person gave them at one time; the newest revision applies."""

    __tablename__ = "cluster_names"
    __table_args__ = (of_version(),)

    model: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    revision: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    """Counts the changes of the version's names, from 1: the ETag."""
    at: Mapped[datetime] = mapped_column(server_default=NOW)
    names: Mapped[dict[str, Any]]
    """Number of a cluster → name."""
    request_id: Mapped[str | None]
