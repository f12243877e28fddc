"""A JSON body handed on as the bytes it came in, so that a large one is parsed off the event loop."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from app.api.strict_json import demand_json, read
from app.errors import EmptyBody


class Holds:
    """What the bytes hold, for the OpenAPI document: `Annotated[bytes, Body(), Holds(PredictRequest)]`."""

    def __init__(self, kind: type) -> None:
        self.kind = kind

    def __get_pydantic_core_schema__(self, _: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_wrap_validator_function(lambda body, _: body, handler.generate_schema(self.kind))


class _Unparsed(Request):
    def __init__(self, request: Request, body: bytes) -> None:
        super().__init__(request.scope, request.receive)
        self._body = body

    async def json(self) -> Any:
        return self._body


class UnparsedRoute(APIRoute):
    """The `route_class` for such routes. Raises EmptyBody, BodyTooLarge, UnsupportedMediaType, RequestTimeout."""

    @staticmethod
    def demand(request: Request) -> None:
        """Raises UnsupportedMediaType for what the route does not read."""
        demand_json(request)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def unparsed(request: Request) -> Response:
            body = await read(request, request.app.state.settings)
            if not body:
                raise EmptyBody
            self.demand(request)
            return await handle(_Unparsed(request, body))

        return unparsed
