"""Prometheus metrics of monitoring: what is logged and dropped, open alarms, and the largest drift."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily as Counter
from prometheus_client.core import GaugeMetricFamily as Gauge
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from app.services.monitoring.prediction_log import PredictionLog


class Monitored(Collector):
    """Logs of this process, and what the database knows of all."""

    def __init__(self, log: PredictionLog) -> None:
        self._log = log

    def collect(self) -> Iterator[Metric]:
        yield Counter("valiant_log_rows", "Rows of predictions that were counted for monitors.", self._log.logged)
        yield Counter(
            "valiant_log_dropped", "Sampled rows of predictions for which the log had no room.", self._log.dropped
        )
        if self._log.open_alarms is None:
            return
        yield Gauge("valiant_alarms_open", "Alarms that are neither closed nor muted.", self._log.open_alarms)
        drift = Gauge(
            "valiant_drift_statistic",
            "Population stability index of a column in the newest window of its model, of the largest ones.",
            labels=("model", "column"),
        )
        for (model, column), psi in self._log.drift.items():
            drift.add_metric((model, column), psi)
        yield drift
