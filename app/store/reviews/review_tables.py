"""The table of rejected rows that people label."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import CheckConstraint, Index, LargeBinary, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from app.store.base.table_base import NOW, Base, Owned


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
