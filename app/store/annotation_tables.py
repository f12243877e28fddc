"""Tables of what people add beside models: names of clusters, labels of rejected rows, and preferences."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, Index, LargeBinary, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from app.store.table_base import NOW, Base, Owned, of_version


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


class ReviewRow(Owned, Base):
    """A row that a classifier rejected. It outlives the version: its label is the work of a person."""

    __tablename__ = "reviews"
    __table_args__ = (
        UniqueConstraint("project_id", "model", "version", "digest"),
        CheckConstraint("dataset_id is null or labelled_at is not null", name="exported"),
        CheckConstraint("(label is null) = (labelled_at is null)", name="labelled"),
        Index("ix_reviews_model_id", "model", "id"),
        Index("ix_reviews_waiting", "id", postgresql_where=text("labelled_at is null")),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    model: Mapped[str]
    version: Mapped[int]
    at: Mapped[datetime] = mapped_column(server_default=NOW)
    digest: Mapped[bytes] = mapped_column(LargeBinary)
    """SHA-256 of its values."""
    target: Mapped[str]
    classes: Mapped[list[Any]]
    columns: Mapped[list[Any]]
    """Names of the inputs, in the order of `data`; an object would not keep it."""
    data: Mapped[list[Any]]
    probabilities: Mapped[list[Any]]
    label: Mapped[Any | None] = mapped_column(JSONB(none_as_null=True))
    labelled_at: Mapped[datetime | None]
    dataset_id: Mapped[UUID | None]
    """The dataset that it was exported to."""


class PreferenceRow(Owned, Base):
    """Preferences of a person: candidates, and pairs of them that were compared."""

    __tablename__ = "preferences"
    __table_args__ = (UniqueConstraint("project_id", "idempotency_key"),)

    id: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)
    updated_at: Mapped[datetime] = mapped_column(server_default=NOW)
    goals: Mapped[list[Any]]
    """Each an `app.ml.decisions.preference_study.PreferenceGoal`."""
    l2: Mapped[float]
    optimise: Mapped[dict[str, Any] | None]
    """The request of the job that the candidates come from."""
    candidates: Mapped[list[Any]]
    """Each with the revision that added it, and a `Candidate`."""
    comparisons: Mapped[list[Any]] = mapped_column(server_default=text("'[]'"))
    """Each with the revision that added it, and a `PairComparison`."""
    revision: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    request_hash: Mapped[str]
    idempotency_key: Mapped[str | None]
    """That of the request that opened them."""
    keys: Mapped[dict[str, Any]] = mapped_column(server_default=text("'{}'"), deferred=True)
    """Idempotency keys of the last requests, each with the revision it made and the hash of its body."""
    last_hash: Mapped[str | None] = mapped_column(deferred=True)
    """That of the body of the last request."""
