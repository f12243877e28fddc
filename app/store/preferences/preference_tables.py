"""The table of preferences."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from app.store.base.table_base import NOW, Base, Owned


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
