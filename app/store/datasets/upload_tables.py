"""Tables of uploads that arrive in parts."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import BigInteger, ForeignKey, LargeBinary, text
from sqlalchemy.orm import Mapped, mapped_column

from app.store.base.table_base import NOW, Base, Owned


class UploadRow(Owned, Base):
    """A file of which a part has arrived."""

    __tablename__ = "uploads"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)
    updated_at: Mapped[datetime] = mapped_column(server_default=NOW)
    """Time of the last bytes."""
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    """Size of the whole file."""
    digest: Mapped[str | None]
    """That which the bytes must have; null: any."""
    offset_bytes: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    """Bytes that have arrived."""
    chunks: Mapped[int] = mapped_column(server_default=text("0"))
    """Number of chunks that these are in."""
    dataset_id: Mapped[UUID | None]
    """The dataset made of the file, which may be gone; null: none yet."""


class UploadChunkRow(Owned, Base):
    """A few MiB of its bytes."""

    __tablename__ = "upload_chunks"

    upload_id: Mapped[UUID] = mapped_column(ForeignKey("uploads.id", ondelete="CASCADE"), primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True)
    payload: Mapped[bytes] = mapped_column(LargeBinary)
