"""Counts and times of requests, for Prometheus."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Times:
    """Times of one kind of request."""

    __slots__ = ("counts", "responses", "total")

    def __init__(self) -> None:
        self.responses: Counter[int] = Counter()
        self.counts = [0] * (len(BUCKETS) + 1)
        self.total = 0.0

    def observe(self, status: int, seconds: float) -> None:
        self.responses[status] += 1
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds


class Metrics(Collector):
    """Written by one event loop only, so plain numbers do; their names and help are added when somebody reads."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(self)
        self.in_flight = 0
        self._times: defaultdict[tuple[str, str], Times] = defaultdict(Times)

    def of(self, route: str, method: str) -> Times:
        return self._times[route, method]

    def collect(self) -> Iterator[Metric]:
        responses = CounterMetricFamily(
            "valiant_requests", "Requests that got a response.", labels=("route", "method", "status")
        )
        for key, times in list(self._times.items()):
            for status, count in list(times.responses.items()):
                responses.add_metric((*key, str(status)), count)
        seconds = HistogramMetricFamily(
            "valiant_request_seconds", "Time to the end of a response, in seconds.", labels=("route", "method")
        )
        for key, times in list(self._times.items()):
            bounds = [*map(str, map(float, BUCKETS)), "+Inf"]
            seconds.add_metric(key, list(zip(bounds, accumulate(times.counts), strict=True)), times.total)
        under_way = GaugeMetricFamily("valiant_requests_in_flight", "Requests in progress.", self.in_flight)
        yield from (responses, seconds, under_way)
