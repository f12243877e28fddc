"""Tables of monitoring."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import CheckConstraint, Index, LargeBinary, text
from sqlalchemy.orm import Mapped, mapped_column

from app.store.base.table_base import NOW, Base, Owned, of_model, of_version


class VersionReferenceRow(Owned, Base):
    """Distributions of the rows that a version was trained on, as JSON."""

    __tablename__ = "version_references"
    __table_args__ = (of_version(),)

    model: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    payload: Mapped[bytes] = mapped_column(LargeBinary)


class MonitorRow(Owned, Base):
    """The monitor of a model."""

    __tablename__ = "monitors"
    __table_args__ = (of_model(),)

    model: Mapped[str] = mapped_column(primary_key=True)
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)
    updated_at: Mapped[datetime] = mapped_column(server_default=NOW)
    options: Mapped[dict[str, Any]]
    """An `app.schemas.monitoring.MonitorOptions`."""
    state: Mapped[dict[str, Any]] = mapped_column(server_default=text("'{}'"))
    """By version: the end of the last window (`until`) and the evidence of each stream."""


class MonitorMinuteRow(Owned, Base):
    """Counts of the rows that one process logged in one minute, of one version."""

    __tablename__ = "monitor_minutes"
    __table_args__ = (of_model(),)

    model: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    start: Mapped[datetime] = mapped_column(primary_key=True)
    writer: Mapped[UUID] = mapped_column(primary_key=True)
    """The process: it writes the same row again, with larger counts, until the minute is over."""
    rows: Mapped[int]
    counts: Mapped[list[Any]]
    """An `app.ml.monitoring.row_counter.TableCounts`, as it is written."""


class MonitorWindowRow(Owned, Base):
    """A window that was tested."""

    __tablename__ = "monitor_windows"
    __table_args__ = (of_model(),)

    model: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    start: Mapped[datetime] = mapped_column(primary_key=True)
    seconds: Mapped[float]
    rows: Mapped[int]
    threshold: Mapped[float]
    tests: Mapped[list[Any]]
    """`app.ml.monitoring.window_tests.StreamTest` each."""


class AlarmRow(Owned, Base):
    """An alarm. It outlives monitor and model."""

    __tablename__ = "alarms"
    __table_args__ = (
        CheckConstraint("state in ('open', 'acknowledged', 'closed')", name="state"),
        Index("ix_alarms_project_id_id", "project_id", "id"),
        Index("ix_alarms_project_id_model_id", "project_id", "model", "id"),
        Index("ix_alarms_open", "project_id", "model", postgresql_where=text("state <> 'closed'")),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    model: Mapped[str]
    version: Mapped[int]
    kind: Mapped[str]
    aspect: Mapped[str]
    column: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)
    window_start: Mapped[datetime]
    window_seconds: Mapped[float]
    statistic: Mapped[float]
    p_value: Mapped[float]
    evidence: Mapped[float]
    threshold: Mapped[float]
    times: Mapped[int] = mapped_column(server_default=text("1"))
    """Number of times that it was raised while it was not closed."""
    state: Mapped[str] = mapped_column(server_default=text("'open'"))
    owner: Mapped[str | None]
    link: Mapped[str | None]
    note: Mapped[str | None]
    muted_until: Mapped[datetime | None]
