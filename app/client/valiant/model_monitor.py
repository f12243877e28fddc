"""Monitors of models, and the alarms that they raise."""

from typing import Any

from .operation import M, operation
from .record import Record, items
from .steps import Steps
from .summary_table import SummaryTable


class Monitor(Record[M]):
    """The monitor of a model: its options, and how many rows it has logged."""

    model: str
    created_at: str
    updated_at: str
    rows: int
    open_alarms: int
    sample_rate: float
    rows_per_second: int
    min_rows: int
    false_alarms_per_year: float
    tolerance_psi: float
    retention_days: int

    def __repr__(self) -> str:
        return f"<Monitor of {self.model}: {self.rows} rows, {self.open_alarms} open alarms>"

    @operation
    def windows(self, limit: int | None = None, version: int | None = None) -> Steps[list[dict[str, Any]]]:
        """Windows of logged rows that were tested for drift, newest first."""
        return (yield from items(self.driver, "models", self.model, "monitor", "drift", limit=limit, version=version))

    @operation
    def delete(self) -> Steps[None]:
        """End the monitoring, and delete what was logged; the alarms stay."""
        yield from self._send("DELETE", "models", self.model, "monitor")


class Alarm(Record[M]):
    """An alarm of a monitor."""

    id: str
    model: str
    version: int
    kind: str
    aspect: str
    column: str
    created_at: str
    window_start: str
    window_seconds: float
    statistic: float
    p_value: float
    evidence: float
    threshold: float
    times: int
    state: str
    owner: str | None
    link: str | None
    note: str | None
    muted_until: str | None

    def __repr__(self) -> str:
        return f"<Alarm of {self.model} {self.version}: {self.kind} of {self.column}, {self.state}>"

    def overview(self) -> SummaryTable:
        title = f"{self.kind} of {self.column} ({self.aspect}) in {self.model}, version {self.version}: {self.state}"
        rows = [[self.window_start[:19], self.statistic, self.evidence, self.threshold, self.times]]
        notes = [text for text in (self.note, self.link) if text]
        return SummaryTable(title, ("window", "PSI", "evidence", "threshold", "times"), rows, notes)

    @operation
    def change(self, /, **changes: Any) -> Steps["Alarm[M]"]:
        """Set `state`, `owner`, `link`, `note` or `muted_until`; None clears one, and what is not named stays."""
        self.fields = yield from self._json("PATCH", "alarms", self.id, body=changes)
        return self

    @operation
    def acknowledge(self, owner: str | None = None) -> Steps["Alarm[M]"]:
        """Acknowledge the alarm, and name who looks after it."""
        named = {} if owner is None else {"owner": owner}
        yield from Alarm.change.steps(self, state="acknowledged", **named)
        return self


class MonitorMethods(Record[M]):
    """Methods of the service about monitors and alarms."""

    @operation
    def watch(self, model: str, /, **options: Any) -> Steps[Monitor[M]]:
        """Monitor a model, or change the options of its monitor, such as `min_rows` and `false_alarms_per_year`."""
        return Monitor(self.driver, (yield from self._json("PUT", "models", model, "monitor", body=options)))

    @operation
    def monitor(self, model: str) -> Steps[Monitor[M]]:
        """The monitor of a model."""
        return Monitor(self.driver, (yield from self._json("GET", "models", model, "monitor")))

    @operation
    def alarms(
        self, model: str | None = None, *, state: str | None = None, limit: int | None = None
    ) -> Steps[list[Alarm[M]]]:
        """Alarms of monitors, newest first."""
        listed = yield from items(self.driver, "alarms", limit=limit, model=model, state=state)
        return [Alarm(self.driver, each) for each in listed]

    @operation
    def alarm(self, alarm_id: str) -> Steps[Alarm[M]]:
        """An alarm by its id."""
        return Alarm(self.driver, (yield from self._json("GET", "alarms", alarm_id)))
