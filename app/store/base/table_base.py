"""The base of all tables, and the column by which Postgres keeps projects apart."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ForeignKeyConstraint, MetaData, text
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from app.base.project_context import DEFAULT_PROJECT

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}
NOW = text("clock_timestamp()")
OWN = text(f"coalesce(nullif(current_setting('valiant.project', true), '')::uuid, '{DEFAULT_PROJECT}')")
"""The project of the unit of work."""


class Base(DeclarativeBase):
    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map = {
        datetime: TIMESTAMP(timezone=True),
        dict[str, Any]: JSONB(none_as_null=True),
        list[Any]: JSONB(none_as_null=True),
    }


class Owned:
    """A table of projects: its policy shows the rows of the unit of work's project, and lets nothing else be written.

    Queries need no condition for that. The column is part of each key in the database, but not of the identity of an
    object: a unit of work sees one project.
    """

    project_id: Mapped[UUID] = mapped_column(server_default=OWN, deferred=True, sort_order=999)


def of_model(ondelete: str | None = "CASCADE") -> ForeignKeyConstraint:
    """The key of a table by the model of its rows."""
    return ForeignKeyConstraint(["project_id", "model"], ["models.project_id", "models.name"], ondelete=ondelete)


def of_version(ondelete: str | None = "CASCADE") -> ForeignKeyConstraint:
    """The key of a table by the version of its rows."""
    columns = ["project_id", "model", "version"]
    return ForeignKeyConstraint(columns, [f"model_versions.{name}" for name in columns], ondelete=ondelete)
