"""Prometheus metrics of API and worker, besides those of requests, predictions and slots."""

import platform
from collections.abc import Iterator
from importlib.metadata import version
from itertools import accumulate
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily as Counter
from prometheus_client.core import GaugeMetricFamily as Gauge
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import QueuePool

from app.services.jobs.attempts import STAGE_BUCKETS, AttemptCounts
from app.services.observability.database_counts import Census

if TYPE_CHECKING:
    from sqlalchemy import Engine


class Process(Collector):
    """The release, the pool of database connections, and attempts at jobs."""

    def __init__(self, engine: "Engine", attempts: AttemptCounts) -> None:
        self._pool, self._attempts = engine.pool, attempts

    def collect(self) -> Iterator[Metric]:
        build = Gauge("valiant_build_info", "The release that runs; always 1.", labels=("version", "python"))
        build.add_metric((version("valiant"), platform.python_version()), 1)
        yield build
        if isinstance(self._pool, QueuePool):
            used = self._pool.checkedout()
            yield Gauge("valiant_database_connections_in_use", "Connections of the pool that work now.", used)
            yield Gauge("valiant_database_connections_limit", "Connections that the pool may open.", self._pool.size())
        attempts = Counter(
            "valiant_attempts",
            "Attempts at jobs: those started, and those ended, by the state they left the job in and its reason.",
            labels=("kind", "event", "reason"),
        )
        for (kind, event, reason), count in self._attempts.counts().items():
            attempts.add_metric((kind, event, reason), count)
        yield attempts
        stages = HistogramMetricFamily(
            "valiant_job_stage_seconds",
            "Wall time of the stages of attempts that succeeded, in seconds.",
            labels=("kind", "stage"),
        )
        bounds = [*map(str, map(float, STAGE_BUCKETS)), "+Inf"]
        for key, times in self._attempts.stages().items():
            stages.add_metric(key, list(zip(bounds, accumulate(times.counts), strict=True)), times.total)
        yield stages
        yield Counter(
            "valiant_leases_expired", "Attempts of any worker that this process found dead.", self._attempts.lost
        )


class Counted(Collector):
    """Counts of the database; only that it is down while it does not respond."""

    def __init__(self, census: Census) -> None:
        self._census = census

    def collect(self) -> Iterator[Metric]:
        queue = self._census.queue
        yield Gauge(
            "valiant_database_up", "1 if the database responded to this scrape in time.", int(queue is not None)
        )
        if queue is None:
            return
        if (workers := self._census.workers) is not None:
            lives = Gauge("valiant_workers", "Workers, by whether they were seen within a lease.", labels=("state",))
            lives.add_metric(("alive",), workers.alive)
            lives.add_metric(("silent",), workers.silent)
            yield lives
        if (backup := self._census.backup_seconds) is not None:
            stated = "When the newest backup was made, in seconds since 1970; 0 where none is stated."
            yield Gauge("valiant_backup_timestamp_seconds", stated, backup)
        jobs = Gauge("valiant_jobs", "Jobs in a state; finished ones as of the last minute.", labels=("kind", "state"))
        for (kind, state), count in {**queue.jobs, **self._census.finished}.items():
            jobs.add_metric((kind, state), count)
        yield jobs
        yield Gauge("valiant_queue_jobs", "Jobs that wait for a worker.", queue.waiting)
        oldest = "How long the job at the head of the queue has waited; 0 if none waits."
        yield Gauge("valiant_queue_oldest_seconds", oldest, queue.oldest_seconds)
