"""Alarms: raised by monitors, looked after by people."""

from typing import Any
from uuid import UUID

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from app.base.monitoring_errors import AlarmNotFound
from app.ml.monitoring.window_tests import StreamTest
from app.schemas.monitoring import Alarm, AlarmChange, AlarmPage, AlarmState, MonitorWindow
from app.store.base.database_clock import NOW
from app.store.base.new_ids import uuid7
from app.store.base.paging import id_in
from app.store.monitoring.monitoring_tables import AlarmRow

DRIFT = "drift"


class AlarmRepository:
    def __init__(self, session: Session) -> None:
        self.session = session

    def raise_drift(self, model: str, window: MonitorWindow, test: StreamTest) -> None:
        """Raise an alarm; one of the same distribution that is not closed is raised once more."""
        row = AlarmRow
        same = select(row).where(
            row.model == model,
            row.version == window.version,
            row.kind == DRIFT,
            row.aspect == test.aspect,
            row.column == test.column,
            row.state != AlarmState.CLOSED,
        )
        facts: dict[str, Any] = {
            "window_start": window.start,
            "window_seconds": window.seconds,
            "statistic": test.psi,
            "p_value": test.p_value,
            "evidence": test.evidence,
            "threshold": window.threshold,
        }
        alarm = self.session.scalars(same.with_for_update()).first()
        if alarm is None:
            names = {"model": model, "version": window.version, "aspect": test.aspect, "column": test.column}
            self.session.add(AlarmRow(id=uuid7(), kind=DRIFT, **names, **facts))
        else:
            for name, value in facts.items():
                setattr(alarm, name, value)
            alarm.times += 1
        self.session.flush()

    def page(self, limit: int, cursor: str | None, *, model: str | None, state: AlarmState | None) -> AlarmPage:
        """Newest first; the cursor is the last id of the page before."""
        row = AlarmRow
        conditions = [] if model is None else [row.model == model]
        conditions += [] if state is None else [row.state == state]
        conditions += [] if cursor is None else [row.id < id_in(cursor)]
        rows = self.session.scalars(select(row).where(*conditions).order_by(row.id.desc()).limit(limit + 1)).all()
        items = [_alarm(each) for each in rows[:limit]]
        return AlarmPage(items=items, next_cursor=str(items[-1].id) if len(rows) > limit else None)

    def get(self, alarm_id: UUID) -> Alarm:
        """Raises AlarmNotFound."""
        return _alarm(self._row(alarm_id))

    def change(self, alarm_id: UUID, change: AlarmChange) -> Alarm:
        """Raises AlarmNotFound."""
        row = self._row(alarm_id, lock=True)
        for name in change.model_fields_set:
            value = getattr(change, name)
            if name != "state" or value is not None:
                setattr(row, name, value)
        self.session.flush()
        return _alarm(row)

    def count_open(self) -> int:
        """Alarms that are neither closed nor muted; for a unit of work across projects."""
        row = AlarmRow
        audible = or_(row.muted_until.is_(None), row.muted_until < NOW)
        return self.session.scalars(select(func.count()).where(row.state != AlarmState.CLOSED, audible)).one()

    def _row(self, alarm_id: UUID, *, lock: bool = False) -> AlarmRow:
        query = select(AlarmRow).where(AlarmRow.id == alarm_id)
        row = self.session.scalars(query.with_for_update() if lock else query).one_or_none()
        if row is None:
            raise AlarmNotFound
        return row


def _alarm(row: AlarmRow) -> Alarm:
    return Alarm(
        created_at=row.created_at,
        window_start=row.window_start,
        id=row.id,
        model=row.model,
        version=row.version,
        kind=row.kind,
        aspect=row.aspect,
        column=row.column,
        window_seconds=row.window_seconds,
        statistic=row.statistic,
        p_value=row.p_value,
        evidence=row.evidence,
        threshold=row.threshold,
        times=row.times,
        state=AlarmState(row.state),
        owner=row.owner,
        link=row.link,
        note=row.note,
        muted_until=row.muted_until,
    )
