"""The table of online sessions."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, LargeBinary, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from app.store.base.table_base import NOW, Base, Owned


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
