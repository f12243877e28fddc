"""Routes that are asked most: declared like all others, but answered past the framework, which costs more than they do.

A `DirectRoute` reads the parameters that its function declares as FastAPI does, with FastAPI's own code and faults; but
the same address again is read from memory. `Front` finds it before the framework looks.
"""

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, NamedTuple

from fastapi import Depends, Request, Response
from fastapi.dependencies.utils import request_params_to_args
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema
from starlette.datastructures import Headers as Sent
from starlette.datastructures import QueryParams
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.arriving import Headers, headers_of, read
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
    """What a direct route has besides the parameters it declares."""

    services: Services
    settings: Settings
    scope: Scope
    headers: Headers


async def _by_the_route() -> None:
    """No dependency: `DirectRoute` passes the call."""


CallDep = Annotated[Call, Depends(_by_the_route)]


class Reply(NamedTuple):
    """An answer with status 200."""

    body: bytes
    media_type: bytes
    headers: Sequence[tuple[bytes, bytes]] = ()

    def head(self) -> list[tuple[bytes, bytes]]:
        return [(b"content-type", self.media_type), (b"content-length", b"%d" % len(self.body)), *self.headers]


class DirectRoute(APIRoute):
    """Its function is `async (call: CallDep, body: …, **parameters) -> Reply`; `body` is there to be documented only.

    Raises EmptyBody, BodyTooLarge, UnsupportedMediaType, RequestTimeout, and what the function raises.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._remembered = lru_cache(MOST)(self._parameters)
        super().__init__(*args, **kwargs)

    @staticmethod
    def demand(headers: Headers) -> None:
        """Raises UnsupportedMediaType for what the route does not read."""

    async def reply(self, scope: Scope, receive: Receive) -> Reply:
        state, headers = scope["app"].state, headers_of(scope)
        body = await read(receive, headers, state.settings)
        if not body:
            raise EmptyBody
        self.demand(headers)
        query, timeout = scope["query_string"], headers.get(b"x-request-timeout")
        short = len(query) + len(timeout or b"") <= LONGEST
        of = self._remembered if short else self._parameters
        parameters = of(tuple(scope["path_params"].items()), query, timeout)
        call = Call(state.services, state.settings, scope, headers)
        found: Reply = await self.endpoint(call=call, body=body, **parameters)
        return found

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

    def _parameters(self, path: tuple[tuple[str, str], ...], query: bytes, timeout: bytes | None) -> Mapping[str, Any]:
        """As declared, by name. Raises RequestValidationError."""
        sent = Sent(raw=[] if timeout is None else [(b"x-request-timeout", timeout)])
        values: dict[str, Any] = {}
        errors: list[Any] = []
        for fields, given in (
            (self.dependant.path_params, dict(path)),
            (self.dependant.query_params, QueryParams(query)),
            (self.dependant.header_params, sent),
        ):
            good, bad = request_params_to_args(fields, given)
            values |= good
            errors += bad
        if errors:
            raise RequestValidationError(errors)
        return values


class Front:
    """Sends a request to the direct route at its address, any other to the framework."""

    def __init__(
        self, framework: ASGIApp, surround: Callable[[ASGIApp], ASGIApp], routes: Iterable[DirectRoute]
    ) -> None:
        self._framework = framework
        self._routes = tuple(routes)
        self._direct = surround(_answer)
        self._at = lru_cache(MOST)(self._find)

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] == "http" and scope["method"] == "POST" and len(scope["path"]) <= LONGEST:
            found = self._at(scope["path"])
            if found is not None:
                scope.update(found)
                return self._direct(scope, receive, send)
        return self._framework(scope, receive, send)

    def _find(self, path: str) -> Mapping[str, Any] | None:
        """What the framework would add to the scope."""
        for route in self._routes:
            found = route.path_regex.match(path)
            if found:
                return {"route": route, "path_params": found.groupdict()}
        return None


async def _answer(scope: Scope, receive: Receive, send: Send) -> None:
    await scope["route"].answer(scope, receive, send)
