"""Counts and times of requests, for Prometheus. One process, one registry: nothing to merge."""

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from app.api.strict_json import StrictRoute

router = APIRouter(tags=["operations"], route_class=StrictRoute)
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        labels = ("route", "method", "status")
        self.requests = Counter("valiant_requests", "Requests answered.", labels, registry=self.registry)
        self.seconds = Histogram(
            "valiant_request_seconds",
            "Time to the end of an answer.",
            labels[:2],
            registry=self.registry,
            buckets=BUCKETS,
        )
        self.in_flight = Gauge("valiant_requests_in_flight", "Requests being answered now.", registry=self.registry)

    def observe(self, route: str, method: str, status: int, seconds: float) -> None:
        self.requests.labels(route, method, status).inc()
        self.seconds.labels(route, method).observe(seconds)


@router.get("/metrics", response_class=PlainTextResponse)
async def read_metrics(request: Request) -> Response:
    """Counters and times of this process, as Prometheus reads them."""
    metrics: Metrics = request.app.state.metrics
    return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)
