"""Whether this process lives, and whether it should get requests."""

from collections.abc import Callable

import structlog
from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Request

from app.api.dependencies import ServicesDep
from app.api.openapi import declare
from app.api.strict_json import StrictRoute
from app.bootstrap import Services
from app.errors import Fault, NotReady
from app.queue import reachable
from app.schemas.health import Check, Liveness, Readiness
from migrations import current

router = APIRouter(tags=["operations"], route_class=StrictRoute)
log = structlog.get_logger(__name__)
RETRY_SECONDS = "2"
CENSUS_SECONDS = 0.3
"""So long a check waits for what only the database knows."""


@router.get("/livez")
async def check_liveness() -> Liveness:
    """The process answers. Touches nothing else, so that no failing server gets a healthy process killed."""
    return Liveness(status="alive")


@router.get("/readyz", responses=declare(503, {"Retry-After": "Seconds after which to ask again."}))
async def check_readiness(request: Request, services: ServicesDep) -> Readiness:
    """Database reachable, schema current, not shutting down. Redis and workers are shown but not required."""
    checks = [Check(name="not_draining", ok=not request.app.state.draining, required=True)]
    # A thread of its own: the shared ones may all be busy while the process is well.
    checks += await to_thread.run_sync(_dependencies, services, limiter=CapacityLimiter(1))
    checks.append(await _workers(services))
    failing = [c.name for c in checks if c.required and not c.ok]
    if failing:
        faults = [Fault("", f"The check {name} fails.", name) for name in failing]
        raise NotReady(faults=faults, headers={"Retry-After": RETRY_SECONDS})
    return Readiness(status="ready", checks=checks)


def _dependencies(services: Services) -> list[Check]:
    return [
        Check(name="database", ok=_holds(lambda: current(services.work.engine)), required=True),
        Check(name="cache", ok=_holds(services.cache.reachable), required=False),
        Check(name="broker", ok=_holds(lambda: reachable(services.celery)), required=False),
    ]


async def _workers(services: Services) -> Check:
    """Predictions need none, so a process without workers is ready."""
    await services.census.refresh(CENSUS_SECONDS)
    workers = services.census.workers
    if workers is None:
        return Check(name="workers", ok=False, required=False, detail="unknown")
    detail = f"{workers.alive} alive"
    if workers.silent:
        detail += f", {workers.silent} silent for up to {workers.longest_silence_seconds:.0f} s"
    return Check(name="workers", ok=workers.alive > 0 and not workers.silent, required=False, detail=detail)


def _holds(check: Callable[[], bool]) -> bool:
    try:
        return check()
    except Exception as error:  # noqa: BLE001  whatever it is, the answer is no
        log.warning("not_ready", error=type(error).__name__)
        return False
