"""Monitors of models, what they have logged by minutes, and the windows that were tested."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import delete, func, select
from sqlalchemy.dialects.postgresql import distinct_on, insert
from sqlalchemy.orm import Session

from app.base.monitoring_errors import MonitorNotFound
from app.ml.monitoring.row_counter import TableCounts
from app.schemas.monitoring import AlarmState, Monitor, MonitorOptions, MonitorWindow, MonitorWindowPage
from app.store.base.database_clock import time_of
from app.store.base.paging import number
from app.store.monitoring.monitoring_tables import AlarmRow, MonitorMinuteRow, MonitorRow, MonitorWindowRow

State = dict[str, Any]
"""By version as text: `until`, the end of its last window, and `evidence`, by stream."""


class Watched(NamedTuple):
    """A monitor of any project."""

    project: UUID
    model: str
    options: MonitorOptions


class Minute(NamedTuple):
    """Counts of one minute of a version, of all processes or of one."""

    start: datetime
    counts: TableCounts


class MonitorRepository:
    def __init__(self, session: Session) -> None:
        self.session = session

    def put(self, model: str, options: MonitorOptions) -> None:
        """Set up the monitor, or change its options; its evidence stays."""
        values = {"model": model, "options": options.model_dump(mode="json")}
        made = insert(MonitorRow).values(**values)
        changes = {"options": values["options"], "updated_at": time_of(self.session)}
        keys = [MonitorRow.project_id, MonitorRow.model]
        self.session.execute(made.on_conflict_do_update(index_elements=keys, set_=changes))

    def get(self, model: str) -> Monitor:
        """Raises MonitorNotFound."""
        row = self._row(model)
        logged = select(func.coalesce(func.sum(MonitorMinuteRow.rows), 0)).where(MonitorMinuteRow.model == model)
        alarms = select(func.count()).where(AlarmRow.model == model, AlarmRow.state != AlarmState.CLOSED)
        return Monitor(
            **row.options,
            model=model,
            created_at=row.created_at,
            updated_at=row.updated_at,
            rows=self.session.scalars(logged).one(),
            open_alarms=self.session.scalars(alarms).one(),
        )

    def delete(self, model: str) -> None:
        """With what it has logged; its alarms stay. Raises MonitorNotFound."""
        self._row(model)
        for row in (MonitorMinuteRow, MonitorWindowRow, MonitorRow):
            self.session.execute(delete(row).where(row.model == model))

    def watched(self) -> list[Watched]:
        """Monitors of all projects; for a unit of work across projects."""
        rows_read = self.session.execute(select(MonitorRow.project_id, MonitorRow.model, MonitorRow.options))
        return [
            Watched(project, model, MonitorOptions.model_validate(options)) for project, model, options in rows_read
        ]

    def add_minutes(self, writer: UUID, minutes: Iterable[tuple[str, int, Minute]]) -> None:
        """Write the counts of one process: they replace those that it has written of the same minutes."""
        values = [
            {
                "model": model,
                "version": version,
                "start": minute.start,
                "writer": writer,
                "rows": minute.counts.rows,
                "counts": minute.counts.written(),
            }
            for model, version, minute in minutes
        ]
        if not values:
            return
        row = MonitorMinuteRow
        made = insert(row).values(values)
        keys = [row.project_id, row.model, row.version, row.start, row.writer]
        changes = {"rows": made.excluded.rows, "counts": made.excluded.counts}
        self.session.execute(made.on_conflict_do_update(index_elements=keys, set_=changes))

    def versions(self, model: str) -> Sequence[int]:
        """Versions of which rows are logged."""
        row = MonitorMinuteRow
        return self.session.scalars(select(row.version).where(row.model == model).distinct()).all()

    def minutes(self, model: str, version: int, since: datetime | None, until: datetime) -> list[Minute]:
        """Counts of all processes, minute by minute, from `since` on and before `until`."""
        row = MonitorMinuteRow
        conditions = [row.model == model, row.version == version, row.start < until]
        conditions += [] if since is None else [row.start >= since]
        rows_read = self.session.execute(select(row.start, row.rows, row.counts).where(*conditions).order_by(row.start))
        result = list[Minute]()
        for start, rows, counts in rows_read:
            read = TableCounts.read(rows, counts)
            if result and result[-1].start == start:
                result[-1] = Minute(start, result[-1].counts.plus(read))
            else:
                result.append(Minute(start, read))
        return result

    def lock_state(self, model: str) -> State | None:
        """The state of the detector, for the rest of the transaction; None: another process has it, or it is gone."""
        query = select(MonitorRow).where(MonitorRow.model == model).with_for_update(skip_locked=True)
        row = self.session.scalars(query).one_or_none()
        return None if row is None else row.state

    def store_state(self, model: str, state: State) -> None:
        row = self.session.get_one(MonitorRow, model)
        row.state = state

    def add_window(self, model: str, window: MonitorWindow) -> None:
        tests = [test.model_dump(mode="json") for test in window.tests]
        values = window.model_dump(exclude={"tests"}) | {"model": model, "tests": tests}
        self.session.execute(insert(MonitorWindowRow).values(**values))

    def windows(self, model: str, limit: int, cursor: str | None, version: int | None) -> MonitorWindowPage:
        """Newest first; the cursor is the number of windows before."""
        row, skipped = MonitorWindowRow, 0 if cursor is None else number(cursor)
        conditions = [row.model == model, *([] if version is None else [row.version == version])]
        ordered = select(row).where(*conditions).order_by(row.start.desc(), row.version.desc())
        rows_read = self.session.scalars(ordered.offset(skipped).limit(limit + 1)).all()
        items = [_window(each) for each in rows_read[:limit]]
        return MonitorWindowPage(items=items, next_cursor=str(skipped + limit) if len(rows_read) > limit else None)

    def newest_windows(self, limit: int) -> list[tuple[str, MonitorWindow]]:
        """The newest window of each model of each project, with the model's name; so many at most."""
        row = MonitorWindowRow
        first = select(row).ext(distinct_on(row.project_id, row.model))
        newest = first.order_by(row.project_id, row.model, row.start.desc()).limit(limit)
        return [(each.model, _window(each)) for each in self.session.scalars(newest)]

    def delete_old(self, model: str, days: int) -> None:
        """Delete minutes and windows that began earlier."""
        before = time_of(self.session) - timedelta(days=days)
        for row in (MonitorMinuteRow, MonitorWindowRow):
            self.session.execute(delete(row).where(row.model == model, row.start < before))

    def _row(self, model: str) -> MonitorRow:
        row = self.session.scalars(select(MonitorRow).where(MonitorRow.model == model)).one_or_none()
        if row is None:
            raise MonitorNotFound
        return row


def _window(row: MonitorWindowRow) -> MonitorWindow:
    return MonitorWindow(
        version=row.version,
        start=row.start,
        seconds=row.seconds,
        rows=row.rows,
        threshold=row.threshold,
        tests=row.tests,
    )
