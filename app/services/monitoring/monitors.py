"""Monitors of models: set up by people, and swept by workers, which close windows, test them and raise alarms."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

import numpy as np
import structlog

from app.base.monitoring_errors import NoReference
from app.base.project_context import in_project
from app.ml.monitoring.reference import Reference, decode
from app.ml.monitoring.row_counter import TableCounts
from app.ml.monitoring.window_tests import Sensitivity, run_tests
from app.schemas.monitoring import (
    Alarm,
    AlarmChange,
    AlarmPage,
    AlarmState,
    Monitor,
    MonitorOptions,
    MonitorWindow,
    MonitorWindowPage,
)
from app.store.base.database_clock import time_of
from app.store.base.database_errors import to_log
from app.store.monitoring.monitors import Minute, State, Watched
from app.store.unit_of_work import Work, WorkFactory

log = structlog.get_logger(__name__)
MIN_WINDOW, MAX_WINDOW = timedelta(hours=1), timedelta(days=1)
BLOCK = timedelta(minutes=5)
SETTLED = timedelta(minutes=2)
"""Age of a minute from which on no process adds to it."""
FEW_ROWS = 20
"""Rows below which a window is not tested."""
SEED = 0x5EED


class Monitors:
    def __init__(self, work: WorkFactory) -> None:
        self._work = work

    def put(self, model: str, options: MonitorOptions) -> Monitor:
        """Raises ModelNotFound, NoReference."""
        with self._work() as w:
            pointer = w.aliases.pointer(model)
            if not w.version_references.find(pointer.model, pointer.version):
                raise NoReference(f"Version {pointer.version} of {model} has none.")
            w.monitors.put(model, options)
            return w.monitors.get(model)

    def get(self, model: str) -> Monitor:
        """Raises MonitorNotFound."""
        with self._work() as w:
            return w.monitors.get(model)

    def delete(self, model: str) -> None:
        """Raises MonitorNotFound."""
        with self._work() as w:
            w.monitors.delete(model)

    def windows(self, model: str, limit: int, cursor: str | None, version: int | None) -> MonitorWindowPage:
        """Raises MonitorNotFound."""
        with self._work() as w:
            w.monitors.get(model)
            return w.monitors.windows(model, limit, cursor, version)

    def alarms(
        self, limit: int, cursor: str | None = None, *, model: str | None = None, state: AlarmState | None = None
    ) -> AlarmPage:
        """Newest first."""
        with self._work() as w:
            return w.alarms.page(limit, cursor, model=model, state=state)

    def alarm(self, alarm_id: UUID) -> Alarm:
        """Raises AlarmNotFound."""
        with self._work() as w:
            return w.alarms.get(alarm_id)

    def change_alarm(self, alarm_id: UUID, change: AlarmChange) -> Alarm:
        """Raises AlarmNotFound."""
        with self._work() as w:
            return w.alarms.change(alarm_id, change)

    def sweep(self, now: datetime | None = None) -> None:
        """Close, test and store the windows of all monitors that are due. now: None is the database's clock."""
        with self._work.across_projects() as w:
            watched = w.monitors.watched()
        for each in watched:
            try:
                with in_project(each.project), self._work() as w:
                    self._sweep(w, each, now or time_of(w.session))
            except Exception as error:  # noqa: BLE001  others are not to wait for this one
                log.warning("monitor_not_swept", model=each.model, **to_log(error))

    def _sweep(self, w: Work, watched: Watched, now: datetime) -> None:
        state = w.monitors.lock_state(watched.model)
        if state is None:
            return
        after: State = dict(state)
        for version in w.monitors.versions(watched.model):
            reference = decode(w.version_references.find(watched.model, version))
            if reference is not None:
                logged = _Logged(watched, version, reference, now - SETTLED)
                after[str(version)] = _test_windows(w, logged, after.get(str(version), {}))
        if after != state:
            w.monitors.store_state(watched.model, after)
        w.monitors.delete_old(watched.model, watched.options.retention_days)


class _Logged(NamedTuple):
    """A version of which rows are logged."""

    watched: Watched
    version: int
    reference: Reference
    until: datetime
    """End of the minutes to which no process adds any more."""


def _test_windows(w: Work, logged: _Logged, state: State) -> State:
    """Test and store the windows that are closed, and raise their alarms; returns the state after them."""
    options, model = logged.watched.options, logged.watched.model
    since = datetime.fromisoformat(state["until"]) if "until" in state else None
    minutes = w.monitors.minutes(model, logged.version, since, logged.until)
    evidence = state.get("evidence", {})
    for window in closed_windows(minutes, options.min_rows, logged.until):
        start, seconds = window[0].start, window_seconds(window)
        since, rows = start + timedelta(seconds=seconds), sum(minute.counts.rows for minute in window)
        if rows < FEW_ROWS:
            continue
        tested = run_tests(
            logged.reference,
            blocks_of(window),
            seconds,
            evidence=evidence,
            sensitivity=Sensitivity(options.tolerance_psi, options.false_alarms_per_year),
            rng=np.random.default_rng([SEED, logged.version, int(start.timestamp())]),
        )
        evidence = tested.evidence
        stored = MonitorWindow(
            version=logged.version,
            start=start,
            seconds=seconds,
            rows=rows,
            threshold=tested.threshold,
            tests=sorted(tested.tests, key=lambda test: -test.psi),
        )
        w.monitors.add_window(model, stored)
        for test in tested.tests:
            if test.alarm:
                w.alarms.raise_drift(model, stored, test)
    return {"evidence": evidence, **({} if since is None else {"until": since.isoformat()})}


def closed_windows(minutes: Sequence[Minute], min_rows: int, now: datetime) -> Iterator[list[Minute]]:
    """Minutes of each window that is closed: after an hour or so many rows, whichever is later, or after a day."""
    window, rows = list[Minute](), 0
    for minute in minutes:
        if window and _is_closed(window[0].start, minute.start, rows, min_rows):
            yield window
            window, rows = [], 0
        window.append(minute)
        rows += minute.counts.rows
    if window and _is_closed(window[0].start, now, rows, min_rows):
        yield window


def _is_closed(start: datetime, now: datetime, rows: int, min_rows: int) -> bool:
    return now - start >= MAX_WINDOW or (now - start >= MIN_WINDOW and rows >= min_rows)


def window_seconds(window: Sequence[Minute]) -> float:
    """Length of a window: to the end of its last minute, but an hour at least and a day at most."""
    length = window[-1].start + timedelta(minutes=1) - window[0].start
    return min(max(length, MIN_WINDOW), MAX_WINDOW).total_seconds()


def blocks_of(window: Sequence[Minute]) -> list[TableCounts]:
    """Sums of five minutes each, of those with rows."""
    blocks: dict[int, TableCounts] = {}
    for minute in window:
        place = int((minute.start - window[0].start) / BLOCK)
        blocks[place] = blocks[place].plus(minute.counts) if place in blocks else minute.counts
    return list(blocks.values())
