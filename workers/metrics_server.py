"""Metrics of one worker, for Prometheus, at a port of its own."""

from collections.abc import Iterator

import structlog
from prometheus_client import start_http_server
from prometheus_client.core import CounterMetricFamily as Counter
from prometheus_client.core import GaugeMetricFamily as Gauge
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from app.broker import DROPPED
from app.wiring import Services
from workers.job_slots import Runner

log = structlog.get_logger(__name__)


class Measured(Collector):
    """Metrics that only a worker knows."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def collect(self) -> Iterator[Metric]:
        slots = Gauge("valiant_worker_slots", "Slots of this worker, by what they do.", labels=("use",))
        for use, count in self._runner.slots().items():
            slots.add_metric((use,), count)
        yield slots
        dropped = Counter(
            "valiant_broker_dropped", "What was removed from the broker, being damaged.", labels=("what",)
        )
        for what in ("message", "key"):
            dropped.add_metric((what,), DROPPED[what])
        yield dropped


def serve(services: Services, runner: Runner) -> None:
    """From a thread that ends with the process; nothing if no port is set. A taken port costs the metrics only."""
    services.registry.register(Measured(runner))
    host, port = services.settings.host, services.settings.worker_metrics_port
    if not port:
        return
    try:
        start_http_server(port, host, services.registry)
    except OSError as error:
        log.warning("metrics_not_served", port=port, reason=error.strerror)
