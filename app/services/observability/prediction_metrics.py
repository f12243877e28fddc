"""Prometheus metrics of predictions."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily as Counter
from prometheus_client.core import GaugeMetricFamily as Gauge
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from app.services.predictions.predictions import Predictions


class Served(Collector):
    """Predictions, and where their models were found."""

    def __init__(self, predictions: Predictions) -> None:
        self._tally, self._memory = predictions.tally, predictions.memory

    def collect(self) -> Iterator[Metric]:
        requests = Counter("valiant_predictions", "Requests whose response held predictions.", labels=("model",))
        rows = Counter("valiant_predicted_rows", "Rows of these requests.", labels=("model",))
        for model, count, total in self._tally.models():
            requests.add_metric((model,), count)
            rows.add_metric((model,), total)
        yield from (requests, rows)
        lookups = Counter(
            "valiant_model_lookups",
            "Looks for a model in memory, then in Redis, then in Postgres.",
            labels=("level", "result"),
        )
        for level, is_hit, count in self._tally.lookups():
            lookups.add_metric((level, "hit" if is_hit else "miss"), count)
        yield lookups
        yield Counter("valiant_model_loads", "Models decoded and checked.", self._tally.loads)
        yield Counter("valiant_model_load_seconds", "Time this took.", self._tally.load_seconds)
        yield Gauge("valiant_models_in_memory", "Decoded models in memory.", len(self._memory))
        yield Gauge("valiant_model_memory_bytes", "Their size.", self._memory.nbytes)
