"""Routes that are asked most: declared like all others, but answered past the framework, which costs more than they do.

A `DirectRoute` reads the parameters that its function declares as FastAPI does, with FastAPI's own code and faults. Its
function makes of them what answers a body, and that is remembered: the same address again costs nothing of it.
`Application` finds the route before the framework looks.
"""

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from fastapi import FastAPI, Request, Response
from fastapi.dependencies.utils import request_params_to_args
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema
from starlette.datastructures import Headers as Sent
from starlette.datastructures import QueryParams
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.arriving import BY_NAME, Headers, read
from app.bootstrap import Services
from app.errors import EmptyBody
from app.settings import Settings

MOST = 1024
LONGEST = 256
"""Addresses remembered, and the longest of them."""


class Holds:
    """What the bytes hold, for the OpenAPI document: `Annotated[bytes, Body(), Holds(PredictRequest)]`."""

    def __init__(self, kind: type) -> None:
        self.kind = kind

    def __get_pydantic_core_schema__(self, _: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_wrap_validator_function(lambda body, _: body, handler.generate_schema(self.kind))


class Call(NamedTuple):
    """One request, read."""

    services: Services
    settings: Settings
    scope: Scope
    headers: Headers
    body: bytes


class Reply(NamedTuple):
    """An answer with status 200."""

    body: bytes
    media_type: bytes
    headers: Sequence[tuple[bytes, bytes]] = ()

    def head(self) -> list[tuple[bytes, bytes]]:
        return [(b"content-type", self.media_type), (b"content-length", b"%d" % len(self.body)), *self.headers]


Respond = Callable[[Call], Reply | Awaitable[Reply]]
"""Awaitable where there is something to wait for."""
WHOLE = "valiant.body"
"""Where a server that has the whole body already leaves it, in the scope."""
READ = (b"content-type", b"accept", b"x-request-timeout")
"""Headers that say, with the address, what is asked of a body."""


async def by_the_route() -> None:
    """No dependency: the route passes what it made of the headers."""


class DirectRoute(APIRoute):
    """Its function is `(body: …, **parameters) -> Respond`; `body` is there to be documented only.

    Raises EmptyBody, BodyTooLarge, UnsupportedMediaType, RequestTimeout, and what the function raises.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._remembered = lru_cache(MOST)(self._respond)
        super().__init__(*args, **kwargs)

    @staticmethod
    def demand(sent: Headers) -> Mapping[str, Any]:
        """More parameters, of those of `READ` that were sent. Raises UnsupportedMediaType for what is not read."""
        raise NotImplementedError

    async def reply(self, scope: Scope, receive: Receive) -> Reply:
        app: Application = scope["app"]
        headers: Headers = scope[BY_NAME]
        body: bytes | None = scope.get(WHOLE)
        if body is None or len(body) > app.settings.max_body_bytes:
            body = await read(receive, headers, app.settings)
        if not body:
            raise EmptyBody
        query, kind, accept, timeout = scope["query_string"], *map(headers.get, READ)
        short = len(query) + len(kind or b"") + len(accept or b"") + len(timeout or b"") <= LONGEST
        of = self._remembered if short else self._respond
        respond = of(tuple(scope["path_params"].items()), query, kind, accept, timeout)
        found = respond(Call(app.services, app.settings, scope, headers, body))
        return found if isinstance(found, Reply) else await found

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        reply = await self.reply(scope, receive)
        await send({"type": "http.response.start", "status": 200, "headers": reply.head()})
        await send({"type": "http.response.body", "body": reply.body})

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """For a request that came through the framework all the same."""

        async def handle(request: Request) -> Response:
            reply = await self.reply(request.scope, request.receive)
            response = Response(reply.body)
            response.raw_headers = reply.head()
            return response

        return handle

    def _respond(self, path: tuple[tuple[str, str], ...], query: bytes, *values: bytes | None) -> Respond:
        """Raises UnsupportedMediaType, RequestValidationError, and what the function raises."""
        sent = {name: value for name, value in zip(READ, values, strict=True) if value is not None}
        demanded = self.demand(sent)
        found: Respond = self.endpoint(body=b"", **demanded, **self._parameters(dict(path), query, sent))
        return found

    def _parameters(self, path: Mapping[str, str], query: bytes, sent: Headers) -> Mapping[str, Any]:
        """As declared, by name. Raises RequestValidationError."""
        values: dict[str, Any] = {}
        errors: list[Any] = []
        for fields, given in (
            (self.dependant.path_params, path),
            (self.dependant.query_params, QueryParams(query)),
            (self.dependant.header_params, Sent(raw=list(sent.items()))),
        ):
            good, bad = request_params_to_args(fields, given)
            values |= good
            errors += bad
        if errors:
            raise RequestValidationError(errors)
        return values


class Application(FastAPI):
    """Sends a request to the direct route at its address, any other to the framework."""

    settings: Settings
    services: Services
    """There while it runs."""

    def answer_directly(self, surround: Callable[[ASGIApp], ASGIApp], routes: Sequence[DirectRoute]) -> None:
        """Once all routes are there: to these, with what is around the framework too."""
        self._direct_routes = routes
        self._direct = surround(_answer)
        self._at = lru_cache(MOST)(self._find)

    def answers_directly(self, scope: Scope) -> bool:
        """Whether a direct route answers, which asks for no clock: then no task has to run it."""
        if scope["method"] != "POST" or len(scope["path"]) > LONGEST or self._at(scope["path"]) is None:
            return False
        return all(name != b"x-request-timeout" for name, _ in scope["headers"])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST" and len(scope["path"]) <= LONGEST:
            found = self._at(scope["path"])
            if found is not None:
                scope["app"] = self
                scope.update(found)
                await self._direct(scope, receive, send)
                return
        await super().__call__(scope, receive, send)

    def _find(self, path: str) -> Mapping[str, Any] | None:
        """What the framework would add to the scope."""
        for route in self._direct_routes:
            found = route.path_regex.match(path)
            if found:
                return {"route": route, "path_params": found.groupdict()}
        return None


def _answer(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
    answered: Awaitable[None] = scope["route"].answer(scope, receive, send)
    return answered
