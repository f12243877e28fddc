"""Prometheus endpoint: counts and times of requests, and of jobs."""

from fastapi import Request, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from app.api.edge.router import OPERATOR, Router
from app.api.params.common import ServicesDep

router = Router(needs=OPERATOR, tags=["operations"])
PATIENCE = 0.8
"""Seconds that a scrape waits for the database."""


@router.get("/metrics", response_class=PlainTextResponse)
async def read_metrics(request: Request, services: ServicesDep) -> Response:
    """Counters and times of this process, and counts of jobs from the database, as Prometheus reads them.

    While the database does not respond, its metrics are left out, and `valiant_database_up` is 0.
    """
    await services.census.refresh(PATIENCE)
    text = generate_latest(request.app.state.metrics.registry) + generate_latest(services.registry)
    return Response(text, media_type=CONTENT_TYPE_PLAIN_0_0_4)
