"""Monitors: what requests leave in the log, windows that are tested, and alarms that people look after."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest

from app.base.monitoring_errors import MonitorNotFound, NoReference
from app.ml.models.model import decode as decode_model
from app.ml.monitoring.column_bins import BinCounts
from app.ml.monitoring.reference import decode
from app.ml.monitoring.row_counter import RowCounter, TableCounts
from app.schemas.monitoring import AlarmChange, AlarmState, MonitorOptions
from app.services.monitoring.monitors import closed_windows
from app.services.monitoring.prediction_log import PredictionLog
from app.store.models.pointer import Pointer
from app.store.monitoring.monitors import Minute

HOUR = timedelta(hours=1)


@pytest.fixture
def monitored(services, publish, trained):
    """A model with a monitor, and its reference."""
    name = f"m-{uuid4()}"
    published = publish(services.work, name)
    with services.work() as w:
        w.version_references.add(name, published.version, trained().reference)
    services.monitors.put(name, MonitorOptions())
    yield name, decode(trained().reference)
    services.models.delete(name)


def counts_like(reference, rows, rng, moved=None):
    """Counts of rows with the distribution of the reference; those of a moved column all in its first bin."""
    columns = []
    for column in (*reference.columns, *reference.predictions):
        shares = np.array([*column.counts, column.missing]) / column.rows
        drawn = rng.multinomial(rows, shares).astype(float)
        if column.name == moved:
            drawn[0], drawn[1:-1] = drawn[:-1].sum(), 0
        columns.append(BinCounts(drawn[:-1], drawn[-1]))
    return TableCounts(rows, tuple(columns))


def fill(services, name, reference, start, hours, **how):
    rng = np.random.default_rng(int(start.timestamp()) // 3600)
    times = [start + step * timedelta(minutes=10) for step in range(6 * hours)]
    minutes = [Minute(time, counts_like(reference, 60, rng, **how)) for time in times]
    with services.work() as w:
        w.monitors.add_minutes(uuid4(), [(name, 1, minute) for minute in minutes])


def test_a_model_without_a_reference_is_refused(services, publish):
    name = f"m-{uuid4()}"
    publish(services.work, name)
    with pytest.raises(NoReference):
        services.monitors.put(name, MonitorOptions())
    with pytest.raises(MonitorNotFound):
        services.monitors.get(name)


def test_windows_without_drift_raise_nothing_and_a_shift_raises_one_alarm(services, monitored):
    name, reference = monitored
    start = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - 20 * HOUR
    fill(services, name, reference, start, 8)
    services.monitors.sweep(start + 9 * HOUR)
    page = services.monitors.windows(name, 50, None, None)
    assert [window.rows for window in page.items] == [360] * 8
    assert [window.seconds for window in page.items] == [3600] * 8
    assert services.monitors.alarms(50, model=name).items == []
    moved = reference.columns[0].name
    fill(services, name, reference, start + 8 * HOUR, 6, moved=moved)
    services.monitors.sweep(start + 15 * HOUR)
    (alarm,) = services.monitors.alarms(50, model=name).items
    assert (alarm.column, alarm.aspect, alarm.state) == (moved, "values", AlarmState.OPEN)
    assert alarm.evidence >= alarm.threshold
    assert alarm.times >= 2, "evidence starts again after an alarm, and the shift goes on"
    assert services.monitors.get(name).open_alarms == 1
    services.monitors.sweep(start + 15 * HOUR)
    assert services.monitors.alarm(alarm.id) == alarm, "a window is tested once"


def test_people_look_after_alarms(services, monitored):
    name, reference = monitored
    start = datetime.now(UTC) - 20 * HOUR
    fill(services, name, reference, start, 6, moved=reference.columns[0].name)
    services.monitors.sweep(start + 8 * HOUR)
    alarms_open = services.monitors.alarms(50, model=name, state=AlarmState.OPEN).items
    assert [(each.column, each.aspect) for each in alarms_open] == [(reference.columns[0].name, "values")]
    (alarm,) = alarms_open

    def count_open():
        with services.work.across_projects() as w:
            return w.alarms.count_open()

    before = count_open()
    until = datetime.now(UTC) + HOUR
    changed = services.monitors.change_alarm(alarm.id, AlarmChange(owner="ann", muted_until=until))
    assert (changed.owner, changed.state) == ("ann", AlarmState.OPEN)
    assert count_open() == before - 1
    changed = services.monitors.change_alarm(alarm.id, AlarmChange(state=AlarmState.CLOSED, owner=None))
    assert (changed.owner, changed.muted_until) == (None, until)
    fill(services, name, reference, start + 8 * HOUR, 6, moved=reference.columns[0].name)
    services.monitors.sweep(start + 16 * HOUR)
    opened = services.monitors.alarms(50, model=name, state=AlarmState.OPEN).items
    assert [(each.column, each.aspect) for each in opened] == [(alarm.column, "values")], "a closed one is raised anew"


def test_what_is_logged_are_the_counts_of_the_rows(services, monitored, trained):
    name, reference = monitored
    model, made = decode_model(trained().blob), trained()
    pointer = Pointer(name, 1, "sha256:any", len(made.blob))
    rows = pa.table(dict(zip(made.golden["columns"], zip(*made.golden["data"], strict=True), strict=True)))
    rows = pa.table(
        {column.name: pa.array(rows[column.name].to_pylist(), pa.string() if column.levels else pa.float64())
         for column in model.inputs}
    )  # fmt: skip
    log = PredictionLog(services.work)
    log.offer(pointer, model, rows, model.predict(rows))
    log.flush()
    assert (log.logged, log.dropped) == (0, 0), "nothing is monitored before it has looked"
    log.renew()
    for _ in range(3):
        log.offer(pointer, model, rows, model.predict(rows))
        log.flush()
        log.flush()
    expected = RowCounter(reference, model).count(model.preparation.raw(rows), model.predict(rows))
    with services.work() as w:
        (minute,) = w.monitors.minutes(name, 1, None, datetime.now(UTC) + HOUR)
    assert minute.counts.rows == log.logged == 3 * len(rows)
    for alarms_open, once in zip(minute.counts.columns, expected.columns, strict=True):
        assert alarms_open.counts.tolist() == (3 * once.counts).tolist()
        assert alarms_open.missing == 3 * once.missing


def test_rows_beyond_the_budget_are_dropped_and_counted(services, monitored, trained):
    name, _ = monitored
    services.monitors.put(name, MonitorOptions(rows_per_second=50))
    model = decode_model(trained().blob)
    pointer = Pointer(name, 1, "sha256:other", 1)
    empty = {column.name: pa.nulls(40, pa.string() if column.levels else pa.float64()) for column in model.inputs}
    table = pa.table(empty)
    log = PredictionLog(services.work)
    log.renew()
    predicted = model.predict(table)
    for _ in range(10):
        log.offer(pointer, model, table, predicted)
    log.flush()
    assert (log.logged, log.dropped) == (50, 350)


def test_rows_that_cannot_be_counted_are_dropped_and_counted(services, monitored, trained):
    name, _ = monitored
    model = decode_model(trained().blob)
    whole = pa.table(
        {column.name: pa.nulls(7, pa.string() if column.levels else pa.float64()) for column in model.inputs}
    )
    log = PredictionLog(services.work)
    log.renew()
    for table in (whole, pa.table({"nobody": [1.0] * 7})):
        log.offer(Pointer(name, 1, "sha256:other", 1), model, table, model.predict(whole))
    with pytest.raises(KeyError):
        log.flush()
    assert (log.logged, log.dropped) == (0, 14)


def test_windows_close_after_an_hour_or_enough_rows_but_after_a_day_at_most():
    begin = datetime(2026, 1, 1, tzinfo=UTC)

    def minutes(*offsets, rows):
        return [Minute(begin + timedelta(minutes=offset), TableCounts(rows, ())) for offset in offsets]

    def sizes(alarms_open, now):
        return [len(window) for window in closed_windows(alarms_open, 200, begin + timedelta(minutes=now))]

    assert sizes(minutes(0, 30, 61, 90, rows=200), 121) == [2, 2]
    assert sizes(minutes(0, 30, 61, 90, rows=200), 120) == [2]
    assert sizes(minutes(0, 60, 120, 180, rows=60), 200) == [4]
    assert sizes(minutes(0, 60, rows=1), 24 * 60) == [2]
    assert sizes(minutes(0, 60, rows=1), 23 * 60) == []
