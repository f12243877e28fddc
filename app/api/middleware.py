"""What surrounds every request. Plain ASGI: nothing here buffers, copies or outlives a response."""

import re
import time
from typing import Any
from uuid import uuid4

import structlog
from fastapi import Request
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.metrics import Metrics
from app.api.problems import InternalError, MalformedRequest, respond

log = structlog.get_logger(__name__)
SANE_ID = re.compile(rb"[A-Za-z0-9._:-]{8,128}")

SECURITY = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    # Nothing we serve runs or loads anything; /docs is one page with its own style.
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'none'",
}


class RequestId:
    """Gives the request an id (the caller's, if it is a sane one), and every answer its headers."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        scope["request_id"] = known = _incoming(scope) or str(uuid4())

        async def stamped(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["X-Request-Id"] = known
                for name, value in SECURITY.items():
                    headers.setdefault(name, value)
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=known):
            await self.app(scope, receive, stamped)


def _incoming(scope: Scope) -> str | None:
    sent = [value for name, value in scope["headers"] if name == b"x-request-id"]
    return sent[0].decode() if len(sent) == 1 and SANE_ID.fullmatch(sent[0]) else None


class Record:
    """One log line and one measurement a request. Bodies, queries and headers are never written down."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status, begun = 0, time.perf_counter()

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            with self.metrics.in_flight.track_inprogress():
                await self.app(scope, receive, watched)
        finally:
            seconds = time.perf_counter() - begun
            route = scope["app"].state.templates.get(id(scope.get("route")), "unknown")
            method = scope["method"] if scope["method"] in METHODS else "other"
            self.metrics.observe(route, method, status, seconds)
            log.info("request", route=route, method=method, status=status, ms=round(1e3 * seconds, 3), **_named(scope))


METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}


def _named(scope: Scope) -> dict[str, Any]:
    """Ids and names from the address, and the job a request made."""
    found: dict[str, Any] = {name: str(value)[:100] for name, value in scope.get("path_params", {}).items()}
    if job_id := scope.get("job_id"):
        found["job_id"] = job_id
    return found


class LastResort:
    """Answers what nothing else answered, and turns away addresses that hold NUL: no database stores it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        if "\0" in scope["path"] or b"%00" in scope["query_string"]:
            await respond(Request(scope), MalformedRequest("The address holds U+0000."))(scope, receive, send)
            return
        try:
            await self.app(scope, receive, watched)
        except Exception as error:
            log.exception("unexpected", error=type(error).__name__)
            if begun:  # too late for an answer: the connection is cut, so that nobody takes a part for the whole
                raise
            await respond(Request(scope), InternalError())(scope, receive, send)
