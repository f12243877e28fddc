"""Tables of datasets, and of files that a job will read."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, ForeignKey, Index, LargeBinary, text
from sqlalchemy.orm import Mapped, mapped_column

from app.store.base.table_base import NOW, Base, Owned


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
