"""Health checks: whether this process lives, and whether it should get requests."""

import asyncio
from typing import TYPE_CHECKING

from fastapi import Request

from app.api.edge.openapi import declare
from app.api.edge.router import OPEN, Router
from app.api.params.common import ServicesDep
from app.base.errors import NotReady
from app.base.faults import Fault
from app.schemas.health import Check, Liveness, Readiness

if TYPE_CHECKING:
    from app.composition.wiring import Services

router = Router(needs=OPEN, tags=["operations"])
RETRY_SECONDS = "2"
CENSUS_SECONDS = 0.3
"""So long a check waits for what only the database knows."""


@router.get("/livez")
async def check_liveness() -> Liveness:
    """The process is alive. The check touches nothing else, so that no failing server gets a healthy process killed."""
    return Liveness(status="alive")


@router.get("/readyz", responses=declare(503, {"Retry-After": "Seconds after which to send the request again."}))
async def check_readiness(request: Request, services: ServicesDep) -> Readiness:
    """Database reachable, schema current, its roles and privileges right, not shutting down; each is known within a
    second, whatever hangs, or within three where this process itself is starved.

    While the database is away, a process that has warm models stays ready for as long as these may predict. Redis and
    workers are shown but not required.
    """
    checks = [Check(name="not_draining", ok=not request.app.state.draining, required=True)]
    lag_seconds = request.app.state.pulse.lag_seconds
    servers, workers = await asyncio.gather(services.dependencies.check(lag_seconds), _workers(services))
    checks += [*servers, workers, *services.warming.checks()]
    if services.settings.allow_anonymous and not services.settings.needs_keys:
        checks.append(Check(name="keys", ok=False, required=False, detail="Requests from other machines need no key."))
    failing = [check for check in checks if check.required and not check.ok]
    if failing:
        faults = [Fault("", check.detail or f"The check {check.name} fails.", check.name) for check in failing]
        raise NotReady(faults=faults, headers={"Retry-After": RETRY_SECONDS})
    return Readiness(status="ready", checks=checks)


async def _workers(services: "Services") -> Check:
    """Predictions need none, so a process without workers is ready."""
    await services.census.refresh(CENSUS_SECONDS)
    workers = services.census.workers
    if workers is None:
        return Check(name="workers", ok=False, required=False, detail="unknown")
    detail = f"{workers.alive} alive"
    if workers.silent:
        detail += f", {workers.silent} silent for up to {workers.longest_silence_seconds:.0f} s"
    if workers.compiling is not None:
        detail += f"; {workers.compiling}"
    return Check(name="workers", ok=workers.alive > 0 and not workers.silent, required=False, detail=detail)
