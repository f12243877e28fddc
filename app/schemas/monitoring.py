"""Monitors and alarms on the wire."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated
from uuid import UUID

from pydantic import AwareDatetime, Field, StringConstraints

from app.base.wire import Body, Wire
from app.ml.monitoring.comparison import ASPECT
from app.ml.monitoring.window_tests import StreamTest
from app.ml.statistics.population_stability import TOLERANCE

Text = Annotated[str, StringConstraints(min_length=1, max_length=500)]


class MonitorOptions(Body):
    """Options of the monitor of a model."""

    sample_rate: float = Field(
        1.0, gt=0, le=1, description="Share of the requests whose rows are logged; 1 logs all of them."
    )
    rows_per_second: int = Field(
        200,
        ge=1,
        le=100_000,
        description="Rows that each process logs in a second at most; of more a random sample is counted.",
    )
    min_rows: int = Field(
        200,
        ge=20,
        le=1_000_000,
        description="Rows of a window: it closes after an hour or so many rows, whichever is later, but after a day at "
        "most.",
    )
    false_alarms_per_year: float = Field(
        1.0, gt=0, le=365, description="False alarms a year that are expected at most, of all columns together."
    )
    tolerance_psi: float = Field(
        TOLERANCE,
        ge=0,
        le=1,
        description="Population stability index up to which a shift does not matter and raises no alarm.",
    )
    retention_days: int = Field(
        30, ge=1, le=3650, description="Days after which counts of minutes and windows are deleted."
    )


class Monitor(MonitorOptions):
    """The monitor of a model."""

    model: str = Field(description="Name of the model.")
    created_at: datetime = Field(description="Time at which the monitor was set up, in UTC.")
    updated_at: datetime = Field(description="Time of the last change of the options, in UTC.")
    rows: int = Field(description="Rows that are logged in the minutes that are kept.")
    open_alarms: int = Field(description="Alarms of the model that are not closed.")


class MonitorWindow(Wire):
    """A window of logged rows of one version, and its tests."""

    version: int = Field(description="Version that predicted the rows.")
    start: datetime = Field(description="Start of the window, in UTC.")
    seconds: float = Field(description="Length of the window in seconds.")
    rows: int = Field(description="Number of logged rows.")
    threshold: float = Field(description="Evidence at which a distribution raises an alarm.")
    tests: list[StreamTest] = Field(description="Test of each distribution, those with the largest index first.")


class MonitorWindowPage(Wire):
    """Page of windows, newest first."""

    items: list[MonitorWindow] = Field(description="Items of this page.")
    next_cursor: str | None = Field(None, description="Cursor of the next page; null on the last page.")


class AlarmState(StrEnum):
    """State of an alarm."""

    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"
    CLOSED = "closed"


class Alarm(Wire):
    """An alarm of a monitor."""

    id: UUID = Field(description="Id of the alarm.")
    model: str = Field(description="Name of the model.")
    version: int = Field(description="Version that predicted the rows.")
    kind: str = Field(description="Kind of the alarm: drift.")
    aspect: str = Field(description=ASPECT)
    column: str = Field(description="Name of the column; of predictions `prediction` or `probability`.")
    created_at: datetime = Field(description="Time at which it was raised first, in UTC.")
    window_start: datetime = Field(description="Start of the window that raised it last, in UTC.")
    window_seconds: float = Field(description="Length of that window in seconds.")
    statistic: float = Field(description="Population stability index of that window.")
    p_value: float = Field(description="p-value of that window alone.")
    evidence: float = Field(description="Evidence of that window and those before it.")
    threshold: float = Field(description="Evidence at which the alarm is raised.")
    times: int = Field(description="Number of times that it was raised since it was closed last, or first.")
    state: AlarmState = Field(description="open, acknowledged by a person, or closed.")
    owner: str | None = Field(None, description="Person who looks after it; null: nobody.")
    link: str | None = Field(None, description="Address of a ticket or a page; null: none.")
    note: str | None = Field(None, description="Note of a person; null: none.")
    muted_until: datetime | None = Field(
        None, description="Time until which it is not counted among the open ones, in UTC; null: it is not muted."
    )


class AlarmPage(Wire):
    """Page of alarms, newest first."""

    items: list[Alarm] = Field(description="Items of this page.")
    next_cursor: str | None = Field(None, description="Cursor of the next page; null on the last page.")


class AlarmChange(Body):
    """Changes of an alarm by a person. A field that is absent stays as it is; null clears it."""

    state: AlarmState | None = Field(None, description="New state; null: it stays.")
    owner: Text | None = Field(None, description="Person who looks after it.")
    link: Text | None = Field(None, description="Address of a ticket or a page.")
    note: Text | None = Field(None, description="Note.")
    muted_until: AwareDatetime | None = Field(
        None, description="Time until which it is not counted among the open ones."
    )
