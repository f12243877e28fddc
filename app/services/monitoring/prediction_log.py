"""The log of predictions: rows are sampled on the hot path, and counted by a thread beside it.

A request offers its rows: one look into a dictionary where nothing is monitored, and a few more steps where its model
is. Whatever does not fit the budget of the second is dropped and counted; nothing waits. A thread counts what was
offered by the bins of the version's reference, and writes the sums of each minute every second. It writes the same row
with larger counts until the minute is over: a process that is killed loses a second, and nothing is counted twice.
"""

import random
import threading
import time
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import numpy as np
import pyarrow as pa
import structlog

from app.base.project_context import PROJECT, in_project
from app.ml.contract.algorithm import Matrix
from app.ml.models.model import Model, Predicted
from app.ml.monitoring.reference import decode
from app.ml.monitoring.row_counter import RowCounter, TableCounts
from app.schemas.monitoring import MonitorOptions
from app.store.base.database_errors import to_log
from app.store.models.pointer import Pointer
from app.store.monitoring.monitors import Minute
from app.store.unit_of_work import WorkFactory

log = structlog.get_logger(__name__)
FLUSH_SECONDS = 1.0
RENEW_SECONDS = 2.0
"""Seconds between two looks at which models are monitored."""
COUNT_SECONDS = 30.0
"""Seconds between two counts of alarms and readings of drift, for the metrics."""
MAX_MODELS, MAX_DRIFTS = 200, 50
MINUTE = 60
MAX_MINUTES = 2_000
"""Minutes of versions that are kept in memory while the database is away; those beyond are dropped."""
MAX_COUNTERS = 1_000


class _Key(NamedTuple):
    project: UUID
    model: str
    version: int


class _Entry(NamedTuple):
    """Rows of one request."""

    key: _Key
    digest: str
    served: Model
    minute: int
    table: pa.Table | Matrix
    predicted: Predicted


class _Watch:
    """A monitored model on the hot path. Races between threads cost a row of the budget, no more."""

    __slots__ = ("budget", "rate", "rows_per_second")

    def __init__(self, options: MonitorOptions) -> None:
        self.rate = options.sample_rate
        self.budget = self.rows_per_second = options.rows_per_second


class PredictionLog:
    """Logs of one process."""

    def __init__(self, work: WorkFactory) -> None:
        self._work = work
        self._writer = uuid4()
        self._watched: dict[tuple[UUID, str], _Watch] = {}
        self._offered: deque[_Entry] = deque()
        self._minutes: dict[tuple[_Key, int], TableCounts] = {}
        self._dirty: set[tuple[_Key, int]] = set()
        self._counters: dict[tuple[UUID, str], RowCounter | None] = {}
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._renew_at = self._count_at = 0.0
        self.open_alarms: int | None = None
        """Alarms of all projects that are neither closed nor muted; None before it is known."""
        self.drift: dict[tuple[str, str], float] = {}
        """Largest indices of columns in the newest windows, by model and column; of all projects with such a model."""
        self.logged = 0
        """Rows that were counted."""
        self.dropped = 0
        """Rows that were sampled, and for which there was no room."""

    # on the hot path

    def offer(self, pointer: Pointer, served: Model, table: pa.Table | Matrix, predicted: Predicted) -> None:
        """Take n rows and their predictions, or a part of them, or none."""
        if not self._watched:
            return
        watch = self._watched.get((PROJECT.get(), pointer.model))
        if watch is None or (watch.rate < 1 and random.random() >= watch.rate):  # noqa: S311  a sample, no secret
            return
        rows, taken = len(table), watch.budget
        if taken < rows:
            self.dropped += rows - max(taken, 0)
            if taken <= 0:
                return
            sample = np.sort(np.random.default_rng().choice(rows, taken, replace=False))
            table = table[sample] if isinstance(table, np.ndarray) else table.take(pa.array(sample))
            predicted = _taken(predicted, sample)
        watch.budget -= min(rows, taken)
        key = _Key(PROJECT.get(), pointer.model, pointer.version)
        self._offered.append(_Entry(key, pointer.digest, served, int(time.time()) // MINUTE, table, predicted))

    # beside it

    def start(self) -> None:
        """Begin to log, in a thread of its own."""
        self._thread = threading.Thread(target=self._run, name="prediction-log", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Write what is left, and end."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout=10)

    def renew(self) -> None:
        """Look at once which models are monitored."""
        with self._work.across_projects() as w:
            monitors = w.monitors.watched()
        self._watched = {(each.project, each.model): _Watch(each.options) for each in monitors}

    def count(self) -> None:
        """Read the alarms, and the drift of the newest windows, for the metrics."""
        with self._work.across_projects() as w:
            self.open_alarms, windows = w.alarms.count_open(), w.monitors.newest_windows(MAX_MODELS)
        indices: dict[tuple[str, str], float] = {}
        for model, window in windows:
            for test in window.tests:
                if test.aspect in {"values", "prediction"}:
                    indices[model, test.column] = max(test.psi, indices.get((model, test.column), test.psi))
        worst = sorted(indices, key=lambda each: -indices[each])[:MAX_DRIFTS]
        self.drift = {each: indices[each] for each in worst}

    def flush(self) -> None:
        """Count what was offered, and write it. Raises DBAPIError while the database is away; the counts stay."""
        self._count()
        done = int(time.time()) // MINUTE
        for project, keys in groupby(sorted(self._dirty), key=lambda each: each[0].project):
            written = list(keys)
            with in_project(project), self._work() as w:
                w.monitors.add_minutes(self._writer, self._rows_of(written))
            self._dirty.difference_update(written)
        for place in [place for place in self._minutes if place[1] < done and place not in self._dirty]:
            del self._minutes[place]

    def _run(self) -> None:
        stopping = False
        while not stopping:
            stopping = self._stopping.wait(FLUSH_SECONDS)  # and once more, to write what is left
            try:
                self._attempt()
            except Exception as error:  # noqa: BLE001  predictions go on, and the next attempt may be better
                log.warning("predictions_not_logged", **to_log(error))

    def _attempt(self) -> None:
        if time.monotonic() >= self._renew_at:
            self._renew_at = time.monotonic() + RENEW_SECONDS
            self.renew()
            if time.monotonic() >= self._count_at:
                self._count_at = time.monotonic() + COUNT_SECONDS
                self.count()
        else:
            for watch in self._watched.values():
                watch.budget = watch.rows_per_second
        self.flush()

    def _rows_of(self, places: list[tuple[_Key, int]]) -> Iterator[tuple[str, int, Minute]]:
        for key, minute in places:
            if (key.project, key.model) in self._watched:  # the model, and with it its monitor, may be gone
                start = datetime.fromtimestamp(minute * MINUTE, UTC)
                yield key.model, key.version, Minute(start, self._minutes[key, minute])

    def _count(self) -> None:
        entries = [self._offered.popleft() for _ in range(len(self._offered))]
        by_place: dict[tuple[_Key, int], list[_Entry]] = {}
        for entry in entries:
            by_place.setdefault((entry.key, entry.minute), []).append(entry)
        uncounted = sum(len(entry.table) for entry in entries)
        try:
            for place, batch in by_place.items():
                counter = self._counter(batch[0])
                if counter is None or (place not in self._minutes and len(self._minutes) >= MAX_MINUTES):
                    continue
                counts = counter.count(_raw_of(batch), _joined([entry.predicted for entry in batch]))
                before = self._minutes.get(place)
                self._minutes[place] = counts if before is None else before.plus(counts)
                self._dirty.add(place)
                rows = sum(len(entry.table) for entry in batch)
                self.logged += rows
                uncounted -= rows
        finally:
            self.dropped += uncounted

    def _counter(self, entry: _Entry) -> RowCounter | None:
        """None for a version without a reference."""
        counter_key = entry.key.project, entry.digest
        if counter_key not in self._counters:
            if len(self._counters) >= MAX_COUNTERS:
                self._counters.clear()
            with in_project(entry.key.project), self._work() as w:
                reference = decode(w.version_references.find(entry.key.model, entry.key.version))
            self._counters[counter_key] = None if reference is None else RowCounter(reference, entry.served)
        return self._counters[counter_key]


def _raw_of(entries: list[_Entry]) -> Matrix:
    """(n, p) of all rows."""
    tables = [entry.table for entry in entries if not isinstance(entry.table, np.ndarray)]
    matrices = [entry.table for entry in entries if isinstance(entry.table, np.ndarray)]
    preparation = entries[0].served.preparation
    if tables and matrices:  # they would change places with their predictions
        parts = [e.table if isinstance(e.table, np.ndarray) else preparation.raw(e.table) for e in entries]
        return np.concatenate(parts)
    if tables:
        names = [column.name for column in preparation.inputs]
        joined = pa.concat_tables([table.select(names) for table in tables], promote_options="permissive")
        return preparation.raw(joined)
    return np.concatenate(matrices)


def _joined(parts: list[Predicted]) -> Predicted:
    """Values and probabilities of all rows."""
    first = parts[0]
    values = np.concatenate([part.values for part in parts])
    if first.probabilities is None:
        return Predicted(values, None, first.classes, ())
    return Predicted(values, np.concatenate([part.probabilities for part in parts]), first.classes, ())


def _taken(predicted: Predicted, rows: Any) -> Predicted:
    probabilities = None if predicted.probabilities is None else predicted.probabilities[rows]
    return Predicted(predicted.values[rows], probabilities, predicted.classes, ())
