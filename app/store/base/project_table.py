"""The table of projects, to which all other rows belong."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Mapped, mapped_column

from app.store.base.table_base import NOW, Base


class ProjectRow(Base):
    """Owner of datasets, jobs and models."""

    __tablename__ = "projects"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    quotas: Mapped[dict[str, Any]] = mapped_column(server_default=text("'{}'"))
    """`app.schemas.projects.Quotas`; one that is left out is no limit."""
    file_formats: Mapped[list[Any]] = mapped_column(server_default=text("'[]'"))
    """Formats of model files that it may import besides the standard ones."""
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)
