"""Middleware around every request. Plain ASGI: nothing here buffers, copies or outlives a response."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextvars import Context
from functools import lru_cache, partial
from importlib.metadata import version
from random import getrandbits
from typing import Any, NamedTuple, Self, cast

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.edge.admission import RightsEnded
from app.api.edge.body import BY_NAME, Headers, headers_of
from app.api.edge.head_requests import respond_to_head
from app.api.edge.problems import CODE, MalformedRequest, check_method, response_to
from app.api.edge.request_metrics import Metrics
from app.base import logs, tracing
from app.base.errors import ValiantError
from app.base.project_context import DEFAULT_PROJECT, PROJECT
from app.formats.bytes import Sent
from app.services.access.passes import Pass

STOPPING = {"Connection": "close", "Retry-After": "5"}
GONE = 499
"""The status that is counted, as others do, where the caller did not wait for the response."""
SANE_ID = re.compile(rb"[A-Za-z0-9._:-]{8,128}")
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
OLDEST_CLIENT = "0.1.0"
"""Oldest release of the Python client that this service works with; an older one warns, and goes on."""
RELEASE = {"Valiant-Version": f"{version('valiant')}; min_client={OLDEST_CLIENT}"}
SECURITY = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    # Responses run and load nothing. A page for people sends a policy of its own instead.
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
}
STAMPS = [(name.lower().encode(), value.encode()) for name, value in (RELEASE | SECURITY).items()]
POLICY = STAMPS[-1][0]
CLOSE_HEADER = b"connection", b"close"
"""The header of a response after which its connection is closed."""


class Stopping(ValiantError):
    code, status, title = "stopping", 503, "The service stops, and the request was not finished"
    remedy = "Send the request again after the time in Retry-After."


class Reply(NamedTuple):
    """A response."""

    body: bytes
    media_type: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ()
    status: int = 200

    def head(self) -> list[tuple[bytes, bytes]]:
        return [(b"content-type", self.media_type), *self.headers, (b"content-length", b"%d" % len(self.body))]


def line(header: tuple[bytes, bytes]) -> bytes:
    """The header as a line of HTTP/1.1."""
    return b"%s: %s\r\n" % header


@lru_cache(1024)
def _lines(media_type: bytes, headers: tuple[tuple[bytes, bytes], ...]) -> bytes:
    """The lines of a reply, up to the length of its body, which comes last."""
    return b"".join(map(line, Reply(b"", media_type, headers).head()[:-1])) + b"content-length: "


Whole = tuple[int, bytes]
"""The status of a response, and its bytes behind the lines that all responses share."""
Process = Callable[..., Whole | Coroutine[Any, Any, Whole]]
"""The response to a body, and with it to the fields of a request's own."""


class Surroundings:
    """Gives a request its id, its response the headers of all responses, and both one log line and one measurement.

    A request that nothing else handles gets its response here. Addresses with NUL are refused: no database stores it.
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
        request_id = scope["request_id"] = _id(scope, headers)
        trace = scope["traceparent"] = _traceparent(scope["headers"]) if b"traceparent" in headers else None
        status, begun, waiting = 0, time.perf_counter(), b"expect" in headers

        async def receiving() -> Message:
            nonlocal waiting
            waiting = False
            return await receive()

        def stamped(message: Message) -> Awaitable[None]:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers_ = message.get("headers", ())
                stamps = STAMPS[:-1] if any(name == POLICY for name, _ in headers_) else STAMPS
                last = (
                    [CLOSE_HEADER] if waiting else []
                )  # its body may come or not: what follows could not be distinguished from it
                message["headers"] = [*stamps, *headers_, *last, (b"x-request-id", request_id.encode())]
            return send(message)

        bound = logs.IDS.set((request_id, None if trace is None else tracing.trace_id(trace)))
        self.metrics.in_flight += 1
        try:
            scope["app"].hosts.check(scope["headers"], scope["http_version"])
            _check_address(scope)
            check_method(scope)
            if scope["method"] == "HEAD":
                await respond_to_head(self.app, scope, receive, stamped)
            else:
                await self.app(scope, receiving if waiting else receive, stamped)
        except asyncio.CancelledError:  # uvicorn waits no longer; a response that has begun is cut
            if not status:
                await response_to(scope, Stopping(headers=STOPPING))(scope, receive, stamped)
        except Exception as error:
            if status:  # too late for a response: the connection is cut, so that nobody takes a part for the whole
                logs.cut(error) if isinstance(error, RightsEnded) else logs.unexpected(error)
                raise
            await response_to(scope, error)(scope, receive, stamped)
        finally:
            self.metrics.in_flight -= 1
            _Outcome(self, scope)(status, time.perf_counter() - begun, scope.get(CODE))
            logs.IDS.reset(bound)


def _check_address(scope: Scope) -> None:
    """Raises MalformedRequest."""
    if "\0" in scope["path"] or b"%00" in scope["query_string"]:
        raise MalformedRequest("The address holds U+0000.")


class Own(NamedTuple):
    """The fields of a request that differ though its head is that of others."""

    request_id: str | None
    """The caller's, if it sent a sane one."""
    trace_id: str | None
    """Id of the caller's trace, if there is one."""

    @classmethod
    def of(cls, headers: Sequence[tuple[bytes, bytes]]) -> Self:
        traceparent = _traceparent(headers)
        return cls(_incoming(headers), None if traceparent is None else tracing.trace_id(traceparent))


LINE = re.compile(
    rb"\r\n(?:[Tt]raceparent: ?(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
    rb"|[Xx]-[Rr]equest-[Ii][Dd]: ?([A-Za-z0-9._:-]{8,128}))"
)
"""A line of a head with a sound trace or a sane id, which it gives. Others need a closer look."""


Fields = tuple[str | None, str | None]
"""Those of a request, in the order of `Own`."""


class CachedRequest:
    """The middleware of requests of which only the body changes. Their connection sends the responses."""

    def __init__(
        self, surroundings: Surroundings, scope: Scope, admitted: tuple[Pass, Callable[[Pass], None]] | None = None
    ) -> None:
        """admitted: a caller with a key, and what its requests have to pass."""
        self._admitted = admitted
        self._project = DEFAULT_PROJECT if admitted is None else admitted[0].project_id
        self._metrics = surroundings.metrics
        self._scope = scope
        self._record = _Outcome(surroundings, scope)
        self._own = Own.of(scope["headers"])

    def processor(self, respond: Callable[[Sent], Reply | Coroutine[Any, Any, Reply]]) -> Process:
        """`process`, in the project of the caller: to enter its context takes less than to set a variable and reset it.

        The connections themselves are in the default project.
        """
        if self._project == DEFAULT_PROJECT:
            return partial(self.process, respond)
        context = Context()
        context.run(PROJECT.set, self._project)
        return partial(context.run, cast("Process", self.process), respond)

    def process(
        self,
        respond: Callable[[Sent], Reply | Coroutine[Any, Any, Reply]],
        body: Sent,
        fields: Fields | None = None,
    ) -> Whole | Coroutine[Any, Any, Whole]:
        """A coroutine where there is something to wait for. own: where it is not in the head that is known."""
        request_id, trace = fields or self._own
        begun, shown_id = time.perf_counter(), request_id or drawn_id()
        bound = logs.IDS.set((shown_id, trace))
        try:
            if self._admitted is not None:
                caller, check = self._admitted
                caller.ahead -= 1
                if caller.ahead < 0:
                    check(caller)
            reply = respond(body)
            if isinstance(reply, Reply):
                return self._whole(reply, shown_id, begun)
            return self._later(reply, shown_id, trace, begun)
        except Exception as error:  # noqa: BLE001  every exception becomes a response
            return self._refusal(error, shown_id, begun)
        finally:
            logs.IDS.reset(bound)

    async def _later(self, reply: Awaitable[Reply], request_id: str, trace: str | None, begun: float) -> Whole:
        """In a task of its own, whose context ends with it."""
        PROJECT.set(self._project)
        logs.IDS.set((request_id, trace))
        self._metrics.in_flight += 1
        try:
            return self._whole(await reply, request_id, begun)
        except asyncio.CancelledError:
            self._record(GONE, time.perf_counter() - begun)
            raise
        except Exception as error:  # noqa: BLE001  as above
            return self._refusal(error, request_id, begun)
        finally:
            self._metrics.in_flight -= 1

    def _refusal(self, error: Exception, request_id: str, begun: float) -> Whole:
        scope = {**self._scope, "request_id": request_id}
        response = response_to(scope, error)
        headers = tuple(pair for pair in response.raw_headers if pair[0] not in {b"content-type", b"content-length"})
        media_type = response.headers["content-type"].encode()
        reply = Reply(bytes(response.body), media_type, headers, response.status_code)
        return self._whole(reply, request_id, begun, scope.get(CODE))

    def _whole(self, reply: Reply, request_id: str, begun: float, code: str | None = None) -> Whole:
        body, media_type, headers, status = reply
        self._record(status, time.perf_counter() - begun, code)
        lines = _lines(media_type, headers)
        return status, b"%s%d\r\nx-request-id: %s\r\n\r\n%s" % (lines, len(body), request_id.encode(), body)


class _Outcome:
    """Metrics and log line of a request to a route."""

    def __init__(self, surroundings: Surroundings, scope: Scope) -> None:
        route = surroundings.templates.get(id(scope.get("route")), "unknown")
        method = scope["method"] if scope["method"] in METHODS else "other"
        self._times = surroundings.metrics.of(route, method)
        self._facts = {"route": route, "method": method, **_named(scope)}

    def __call__(self, status: int, seconds: float, code: str | None = None) -> None:
        """code: of the problem that was the response, if any."""
        self._times.observe(status, seconds)
        if logs.logs_request(status):
            facts = self._facts if code is None else {**self._facts, "code": code}
            logs.request(**facts, status=status, ms=round(1e3 * seconds, 3))


def _id(scope: Scope, headers: Headers) -> str:
    return (b"x-request-id" in headers and _incoming(scope["headers"])) or drawn_id()


def _incoming(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """The caller's id, if it is a sane one."""
    sent = [value for name, value in headers if name == b"x-request-id"]
    return sent[0].decode() if len(sent) == 1 and SANE_ID.fullmatch(sent[0]) else None


def _traceparent(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """The caller's trace context, if there is one and it is sound."""
    sent = [value for name, value in headers if name == b"traceparent"]
    return tracing.sound(sent[0].decode("latin-1")) if len(sent) == 1 else None


def drawn_id() -> str:
    """128 bits. It names a request and keeps no secret, so it needs none of the system's entropy."""
    return f"{getrandbits(128):032x}"


def _named(scope: Scope) -> dict[str, Any]:
    """Ids and names from the address, and the job a request made."""
    fields: dict[str, Any] = {name: str(value)[:100] for name, value in scope.get("path_params", {}).items()}
    if job_id := scope.get("job_id"):
        fields["job_id"] = job_id
    return fields
