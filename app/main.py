"""The application: settings → services → routers. Importing this does no work.

python -m app.main > app/openapi.json       writes the OpenAPI document anew
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

from anyio.to_thread import current_default_thread_limiter
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import iter_route_contexts
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

from app.api import fast, routes
from app.api.edge import openapi, problems
from app.api.edge.event_loop_pulse import Pulse
from app.api.edge.hosts import Hosts
from app.api.edge.middleware import Surroundings
from app.api.edge.problems import with_head
from app.api.edge.request_metrics import Metrics
from app.api.edge.router import Router
from app.api.edge.shared_reads import SharedReads
from app.api.fast.route import Application, DirectRoute
from app.base.settings import Settings

if TYPE_CHECKING:
    from app.composition.folder_wiring import FolderServices
    from app.composition.wiring import Services


def create_app(
    settings: Settings | None = None,
    services: "Services | FolderServices | None" = None,
    routers: Iterable[Router] | None = None,
) -> Application:
    """Services that are given stay the giver's to close; otherwise the lifespan builds and closes them.

    routers: None is all of `app.api.routes`.
    """
    settings, measured = settings or Settings(), Metrics()
    templates: dict[int, str] = {}
    app = Application(
        title="Valiant",
        summary="Trains, certifies and serves classical machine-learning models.",
        description=openapi.DESCRIPTION,
        contact={"name": "The Valiant authors"},
        license_info={"name": "Apache License 2.0", "identifier": "Apache-2.0"},
        version="0.1.0",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
        lifespan=_lifespan,
        # Its spans and logs carry request bodies and exception texts.
        telemetry={"tracing": False, "metrics": False, "logs": False, "operation_spans": False},
        middleware=[*_cross_origin(settings), Middleware(Surroundings, measured, templates)],
    )
    app.settings = settings
    app.hosts = Hosts(settings.hosts.split(","), settings.host, settings.cors_origins.split(","))
    app.state.metrics = measured
    app.state.draining = False
    app.state.listens_when_warm = False
    app.state.job_reads = SharedReads()
    app.state.pulse = Pulse()
    if services is not None:
        app.services = services  # type: ignore[assignment]  # those of a folder have all that their routes use
    if routers is None:
        from app.api.edge.database_problems import HANDLERS  # noqa: PLC0415  as in `_lifespan`

        app.problem_handlers = HANDLERS
    problems.install(app)
    app.openapi = partial(openapi.document, app)  # type: ignore[method-assign]  # the documented way
    for router in routes.routers() if routers is None else routers:
        app.router.routes.extend(router.routes)
    literal: dict[str, set[str]] = {}
    direct: list[DirectRoute] = []
    for route in iter_route_contexts(app.routes):
        if isinstance(route.original_route, DirectRoute):
            direct.append(route.original_route)
        if route.path is not None:
            templates[id(route.original_route)] = route.path
            if "{" not in route.path:
                literal.setdefault(route.path, set()).update(route.methods or ())
    app.literal_paths = {path: with_head(methods) for path, methods in literal.items()}
    app.fast = fast.is_on(settings)
    app.route_directly(partial(Surroundings, metrics=measured, templates=templates), direct if app.fast else [])
    return app


def _cross_origin(settings: Settings) -> list[Middleware]:
    """For pages of the origins that are listed; without any, browsers let no page of another origin read a response."""
    origins = [origin.strip() for origin in settings.cors_origins.split(",") if origin]
    if not origins:
        return []
    return [
        Middleware(
            CORSMiddleware, allow_origins=origins, allow_methods=["*"], allow_headers=["*"], expose_headers=["*"]
        )
    ]


@asynccontextmanager
async def _lifespan(app: Application) -> AsyncIterator[None]:
    settings = app.settings
    # As many threads as connections: a thread that has one never waits for another.
    current_default_thread_limiter().total_tokens = settings.database_pool
    if hasattr(app, "services"):
        yield
        return
    from app.composition.wiring import build  # noqa: PLC0415  models of a folder need neither the database nor what it takes

    app.services = build(settings, role="api")
    app.services.access.start()
    app.services.datasets.warm()
    app.services.prediction_log.start()
    if settings.warm:
        app.services.warming.start()
        if app.state.listens_when_warm:
            await run_in_threadpool(app.services.warming.wait_for_disk)
    pulse = asyncio.create_task(app.state.pulse.run(settings.beat_file))
    try:
        yield
    finally:
        pulse.cancel()
        with suppress(asyncio.CancelledError):
            await pulse
        app.services.close()
        del app.services


if __name__ == "__main__":
    json.dump(create_app(Settings()).openapi(), sys.stdout, indent=1, sort_keys=True, ensure_ascii=False)
    sys.stdout.write("\n")
