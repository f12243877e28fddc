"""Tables of the keys that reach projects, and of what was done with these."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, ForeignKey, Identity, Index, LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from app.store.base.table_base import NOW, Base, Owned


class KeyRow(Base):
    """A key of the API. The key itself is not stored, and cannot be found from what is."""

    __tablename__ = "api_keys"
    __table_args__ = (
        Index("ix_api_keys_project_id_id", "project_id", "id"),
        Index("ix_api_keys_changed_at", "changed_at"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    project_id: Mapped[UUID] = mapped_column(ForeignKey("projects.id"))
    name: Mapped[str]
    prefix: Mapped[str]
    """The first characters of the key, by which a person knows it again."""
    digest: Mapped[bytes] = mapped_column(LargeBinary, unique=True)
    scopes: Mapped[list[Any]]
    models: Mapped[list[Any] | None]
    """Patterns of the models that it may use; null: all."""
    created_by: Mapped[str | None]
    """The key that created it; null: the command line."""
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)
    expires_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]
    changed_at: Mapped[datetime] = mapped_column(server_default=NOW)
    """Time of the last change of what the key may do."""
    last_used_at: Mapped[datetime | None]


class AuditRow(Owned, Base):
    """A request that changed something, or was refused to."""

    __tablename__ = "audit"
    __table_args__ = (Index("ix_audit_project_id_id", "project_id", "id"),)

    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    at: Mapped[datetime] = mapped_column(server_default=NOW)
    actor: Mapped[str]
    action: Mapped[str]
    target: Mapped[str]
    outcome: Mapped[int]
    request_id: Mapped[str]
