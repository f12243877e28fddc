"""Metrics of one worker, for Prometheus, at a port of its own."""

import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from wsgiref.simple_server import WSGIRequestHandler

import structlog
from prometheus_client import start_http_server
from prometheus_client.core import CounterMetricFamily as Counter
from prometheus_client.core import GaugeMetricFamily as Gauge
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from app.composition.wiring import Services
from app.messaging.broker import DROPPED
from workers.job_slots import Runner

log = structlog.get_logger(__name__)


DISCARDED_BYTES, DISCARDED_SECONDS = 64 << 20, 5.0
"""Limits on what is read and dropped after a response, so that a caller who sends a body sees the response."""


class _Handler(WSGIRequestHandler):
    timeout = 5.0
    """Seconds without a byte of a request."""

    def log_message(self, *_: object) -> None:
        """Log nothing: a scrape is no event."""

    def finish(self) -> None:
        super().finish()
        with suppress(OSError):
            self._drop_rest()

    def _drop_rest(self) -> None:
        connection: socket.socket = self.request
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(1.0)
        end, size = time.monotonic() + DISCARDED_SECONDS, 0
        while size <= DISCARDED_BYTES and time.monotonic() < end and (chunk := connection.recv(1 << 16)):
            size += len(chunk)


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
        server, _ = start_http_server(port, host, services.registry)
        server.RequestHandlerClass = _Handler
    except OSError as error:
        log.warning("metrics_not_served", port=port, reason=error.strerror)
