"""What surrounds every request. Plain ASGI: nothing here buffers, copies or outlives a response."""

import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from random import getrandbits
from typing import Any, NamedTuple

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import logs
from app.api.arriving import BY_NAME, Headers, headers_of
from app.api.metrics import Metrics
from app.api.problems import MalformedRequest, answer

SANE_ID = re.compile(rb"[A-Za-z0-9._:-]{8,128}")
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
SECURITY = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    # Nothing we serve runs or loads anything; /docs is one page with its own style.
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'none'",
}
STAMPS = [(name.lower().encode(), value.encode()) for name, value in SECURITY.items()]


class Reply(NamedTuple):
    """An answer with status 200."""

    body: bytes
    media_type: bytes
    headers: Sequence[tuple[bytes, bytes]] = ()

    def head(self) -> list[tuple[bytes, bytes]]:
        return [(b"content-type", self.media_type), (b"content-length", b"%d" % len(self.body)), *self.headers]


Whole = tuple[list[tuple[bytes, bytes]], bytes]
"""The headers of an answer but for `STAMPS`, and its body."""


class Surroundings:
    """Gives a request its id, its answer the headers of all answers, and both one log line and one measurement.

    What nothing else answers is answered here, and addresses that hold NUL are turned away: no database stores it.
    Bodies, queries and headers are never written down.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, templates: Mapping[int, str]) -> None:
        """templates: the paths of routes, by their `id`, as the OpenAPI document has them."""
        self.app = app
        self.metrics = metrics
        self.templates = templates

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = scope[BY_NAME] = headers_of(scope)
        known = scope["request_id"] = _id(scope, headers)
        status, begun = 0, time.perf_counter()

        def stamped(message: Message) -> Awaitable[None]:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*STAMPS, *message.get("headers", ()), (b"x-request-id", known.encode())]
            return send(message)

        bound = logs.REQUEST_ID.set(known)
        self.metrics.in_flight += 1
        try:
            if "\0" in scope["path"] or b"%00" in scope["query_string"]:
                raise MalformedRequest("The address holds U+0000.")  # noqa: TRY301  answered as all others are
            await self.app(scope, receive, stamped)
        except Exception as error:
            if status:  # too late for an answer: the connection is cut, so that nobody takes a part for the whole
                logs.unexpected(error)
                raise
            response = await answer(scope, error)
            await response(scope, receive, stamped)
        finally:
            self.metrics.in_flight -= 1
            self._tell(scope, status, time.perf_counter() - begun)
            logs.REQUEST_ID.reset(bound)

    def at_once(self, scope: Scope, answer: Callable[[Headers], Reply | None]) -> Whole | None:
        """As a call, for an answer that waits for nothing. None if it is None or fails: that is told nowhere yet."""
        headers, begun = headers_of(scope), time.perf_counter()
        known = _id(scope, headers)
        bound = logs.REQUEST_ID.set(known)
        try:
            reply = answer(headers)
            if reply is None:
                return None
            self._tell(scope, 200, time.perf_counter() - begun)
        except Exception:  # noqa: BLE001  whatever it is, the usual way answers it
            return None
        finally:
            logs.REQUEST_ID.reset(bound)
        return [*reply.head(), (b"x-request-id", known.encode())], reply.body

    def _tell(self, scope: Scope, status: int, seconds: float) -> None:
        route = self.templates.get(id(scope.get("route")), "unknown")
        method = scope["method"] if scope["method"] in METHODS else "other"
        self.metrics.observe(route, method, status, seconds)
        if logs.tells_requests():
            logs.request(route=route, method=method, status=status, ms=round(1e3 * seconds, 3), **_named(scope))


def _id(scope: Scope, headers: Headers) -> str:
    return (b"x-request-id" in headers and _incoming(scope)) or drawn_id()


def _incoming(scope: Scope) -> str | None:
    """The caller's id, if it is a sane one."""
    sent = [value for name, value in scope["headers"] if name == b"x-request-id"]
    return sent[0].decode() if len(sent) == 1 and SANE_ID.fullmatch(sent[0]) else None


def drawn_id() -> str:
    """128 bits. It names a request and keeps no secret, so the system's entropy is not asked for it."""
    return f"{getrandbits(128):032x}"


def _named(scope: Scope) -> dict[str, Any]:
    """Ids and names from the address, and the job a request made."""
    found: dict[str, Any] = {name: str(value)[:100] for name, value in scope.get("path_params", {}).items()}
    if job_id := scope.get("job_id"):
        found["job_id"] = job_id
    return found
