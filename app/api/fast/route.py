"""Direct routes of the most frequent requests: declared like all others, but dispatched past the slow framework.

A `DirectRoute` reads the parameters that its function declares as FastAPI does, with FastAPI's own code and faults. Its
function makes of them a handler of bodies, and that is remembered: the same address again costs nothing of it.
`Application` finds the route before the framework looks, and a server that has all of a request may get from it
the `PreparedRequest` of a head, which is remembered too.
"""

import asyncio
import re
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from fastapi import FastAPI, Request, Response
from fastapi.dependencies.utils import request_params_to_args
from fastapi.exceptions import RequestValidationError
from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema
from starlette.datastructures import Headers as Given
from starlette.datastructures import QueryParams
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.edge.admission import GuardedRoute, credential
from app.api.edge.body import BY_NAME, Headers, headers_of, read
from app.api.edge.hosts import Hosts
from app.api.edge.middleware import GONE, CachedRequest, Reply, Surroundings, Whole
from app.api.edge.problems import HANDLERS, Handlers
from app.api.fast.head import Head, read_head
from app.api.fast.head_cache import HeadCache, PreparedRequest
from app.base.errors import EmptyBody, ValiantError
from app.base.settings import Settings
from app.formats.bytes import Sent
from app.services.access.passes import CredentialInvalid, Pass

if TYPE_CHECKING:
    from app.composition.wiring import Services

PLAIN_URL = re.compile(rb"/[A-Za-z0-9._~/:-]*(\?[A-Za-z0-9._~/:=&,;+-]*)?")
MAX_CACHED_ADDRESSES = 1024
MAX_ADDRESS_LENGTH = 256
"""Addresses remembered, and the longest of them."""


class Holds:
    """The content of the bytes, for the OpenAPI document: `Annotated[bytes, Body(), Holds(PredictRequest)]`."""

    def __init__(self, kind: type) -> None:
        self.kind = kind

    def __get_pydantic_core_schema__(self, _: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_wrap_validator_function(lambda body, _: body, handler.generate_schema(self.kind))


class Call(NamedTuple):
    """The application that is called, and the caller's headers."""

    app: "Application"
    sent: Sequence[tuple[bytes, bytes]]
    """All headers."""
    headers: Headers
    """By name."""


Respond = Callable[[Call, Sent], Reply | Coroutine[Any, Any, Reply]]
"""The response to a body. A coroutine where there is something to wait for."""
READ = (b"content-type", b"accept", b"x-request-timeout", b"x-min-revision", b"x-min-version")
"""Headers that define, with the address, how a body is processed."""


async def by_the_route() -> None:
    """No dependency: the route passes what it made of the headers."""


class DirectRoute(GuardedRoute):
    """Its function is `(body: …, **parameters) -> Respond`; `body` is there to be documented only.

    Raises EmptyBody, BodyTooLarge, UnsupportedMediaType, RequestTimeout, and what the function raises.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._remembered = lru_cache(MAX_CACHED_ADDRESSES)(self._respond)
        super().__init__(*args, **kwargs)

    @staticmethod
    def demand(sent: Headers) -> Mapping[str, Any]:
        """More parameters, of those of `READ` that were sent. Raises UnsupportedMediaType for what is not read."""
        raise NotImplementedError

    @staticmethod
    def lead(sent: Headers) -> int:  # noqa: ARG004  here it plays no part
        """Bytes of a body before its numbers, which are read where they are if that is a multiple of eight bytes."""
        return 0

    async def reply(self, scope: Scope, receive: Receive) -> Reply:
        app: Application = scope["app"]
        headers: Headers = scope[BY_NAME]
        body = await read(receive, headers, app.settings)
        if not body:
            raise EmptyBody
        respond = self.respond(scope["path_params"], scope["query_string"], headers)
        reply = respond(Call(app, scope["headers"], headers), body)
        return reply if isinstance(reply, Reply) else await _unless_gone(reply, receive)

    async def process(self, scope: Scope, receive: Receive, send: Send) -> None:
        reply = await self.reply(scope, receive)
        await send({"type": "http.response.start", "status": reply.status, "headers": reply.head()})
        await send({"type": "http.response.body", "body": reply.body})

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """For a request that came through the framework all the same."""

        async def handle(request: Request) -> Response:
            reply = await self.reply(request.scope, request.receive)
            response = Response(reply.body, reply.status)
            response.raw_headers = reply.head()
            return response

        return handle

    def respond(self, path: Mapping[str, str], query: bytes, headers: Headers) -> Respond:
        """The handler of bodies. Raises UnsupportedMediaType, RequestValidationError, and what the function raises."""
        values = [headers.get(name) for name in READ]
        short = len(query) + sum(len(value or b"") for value in values) <= MAX_ADDRESS_LENGTH
        return (self._remembered if short else self._respond)(tuple(path.items()), query, *values)

    def _respond(self, path: tuple[tuple[str, str], ...], query: bytes, *values: bytes | None) -> Respond:
        sent = {name: value for name, value in zip(READ, values, strict=True) if value is not None}
        demanded = self.demand(sent)
        respond: Respond = self.endpoint(body=b"", **demanded, **self._parameters(dict(path), query, sent))
        return respond

    def _parameters(self, path: Mapping[str, str], query: bytes, sent: Headers) -> Mapping[str, Any]:
        """The parameters as declared, by name. Raises RequestValidationError, and InvalidRequest for others."""
        in_address = QueryParams(query)
        self.demand_known(in_address)
        values: dict[str, Any] = {}
        errors: list[Any] = []
        for fields, received in (
            (self.dependant.path_params, path),
            (self.dependant.query_params, in_address),
            (self.dependant.header_params, Given(raw=list(sent.items()))),
        ):
            good, bad = request_params_to_args(fields, received)
            values |= good
            errors += bad
        if errors:
            raise RequestValidationError(errors)
        return values


async def _unless_gone(reply: Coroutine[Any, Any, Reply], receive: Receive) -> Reply:
    """Once the body is there, the next message means that the caller is gone: its request then leaves the queue."""
    replying, gone = asyncio.create_task(reply), asyncio.ensure_future(receive())
    try:
        await asyncio.wait({replying, gone}, return_when=asyncio.FIRST_COMPLETED)
        return replying.result() if replying.done() else Reply(b"", b"text/plain", status=GONE)
    finally:
        replying.cancel()
        gone.cancel()


class Application(FastAPI):
    """Sends a request to the direct route at its address, any other to the framework."""

    settings: Settings
    services: "Services"
    """There while it runs."""
    hosts: Hosts
    problem_handlers: Handlers = HANDLERS
    fast: bool
    """True if requests skip the framework, and connections uvicorn's own protocol."""
    literal_paths: Mapping[str, Collection[str]] = {}
    """Paths without parameters, such as /v1/datasets/upload, and their methods. None of them is a name in another."""

    def route_directly(self, surround: Callable[[ASGIApp], Surroundings], routes: Sequence[DirectRoute]) -> None:
        """Once all routes are there: to these, with what is around the framework too."""
        self._direct_routes = routes
        self._direct = surround(_dispatch)
        self._at = lru_cache(MAX_CACHED_ADDRESSES)(self._find)
        self._shared = lru_cache(MAX_CACHED_ADDRESSES)(self._prepared)
        self.heads = HeadCache(self._shared)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST" and len(scope["path"]) <= MAX_ADDRESS_LENGTH:
            matched = None if self.hosts.is_cross_origin(scope["headers"]) else self._at(scope["path"])
            if matched is not None:
                scope["app"] = self
                scope.update(matched)
                await self._direct(scope, receive, send)
                return
        await super().__call__(scope, receive, send)

    def refuse(self, error: ValiantError) -> Whole:
        """The response to what is no request."""

        def respond(_: Sent) -> Reply:
            raise error

        nothing = {"type": "http", "app": self, "method": "", "path": "", "headers": []}
        refusal = CachedRequest(self._direct, nothing).process(respond, b"")
        assert isinstance(refusal, tuple)  # noqa: S101  nothing is waited for
        return refusal

    def _find(self, path: str) -> Mapping[str, Any] | None:
        """The entries that the framework would add to the scope."""
        for route in self._direct_routes:
            match = route.path_regex.match(path)
            if match:
                return {"route": route, "path_params": match.groupdict()}
        return None

    def _prepared(self, head: bytes) -> PreparedRequest | None:
        """None for any other, for an address with escapes or with what should be escaped, and where it is wrong.

        Raises what refuses the caller's key.
        """
        requested = read_head(head)
        caller = self._pass(requested)
        if (
            requested is None
            or not 0 < requested.size <= self.settings.max_body_bytes
            or not PLAIN_URL.fullmatch(requested.url)
            or self.hosts.is_cross_origin(requested.headers)
        ):
            return None
        address, _, query = requested.url.partition(b"?")
        path = address.decode()
        matched = self._find(path) if len(path) <= MAX_ADDRESS_LENGTH else None
        if matched is None:
            return None
        scope = {"type": "http", "app": self, "method": "POST", "path": path, "headers": requested.headers}
        headers = headers_of(scope)
        route: DirectRoute = matched["route"]
        if caller is not None:
            route.allow(caller, matched["path_params"])
        try:
            self.hosts.check(requested.headers)
            respond = route.respond(matched["path_params"], query, headers)
        except (ValiantError, RequestValidationError):
            return None
        admitted = None if caller is None else (caller, self.services.access.check)
        cached_request = CachedRequest(self._direct, {**scope, **matched}, admitted)
        respond = partial(respond, Call(self, requested.headers, headers))
        return PreparedRequest(requested.size, route.lead(headers), cached_request.processor(respond))

    def _pass(self, requested: Head | None) -> Pass | None:
        """The pass of the caller; None where no key is needed.

        Raises CredentialMissing, CredentialInvalid: a head whose key is not known here is not remembered, so that
        nobody without a key displaces the heads of others.
        """
        if not self.settings.needs_keys:
            return None
        caller = None if requested is None else self.services.access.known(credential(requested.headers, "POST"))
        if caller is None:
            raise CredentialInvalid
        return caller


async def _dispatch(scope: Scope, receive: Receive, send: Send) -> None:
    route: DirectRoute = scope["route"]
    await route.admit(scope)
    await route.process(scope, *route.watched(scope, receive, send))
