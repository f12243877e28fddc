"""A route whose JSON body is parsed strictly before pydantic validates it."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.params import Form

from app.api.edge.admission import GuardedRoute
from app.api.edge.body import BY_NAME, read
from app.api.edge.negotiation import demand_json
from app.base.errors import InvalidRequest
from app.base.faults import CUT, MAX_LISTED_FAULTS, Fault, summary
from app.base.settings import MiB, Settings
from app.base.validation import in_document_order, validation_faults
from app.formats.strict_json import parse

FORM_BYTES = MiB
"""Limit on a body with a schema: it holds settings, not data."""


class _Read(Request):
    """A request whose body was read and parsed already."""

    def __init__(self, request: Request, raw: bytes, value: object) -> None:
        super().__init__(request.scope, request.receive)
        self._body = raw
        self.value = value

    async def json(self) -> Any:
        return self.value


class StrictRoute(GuardedRoute):
    """A route whose JSON body comes through `parse`: use it as the `route_class` of every router."""

    most = FORM_BYTES
    """Limit on the body, in bytes; the settings have one too."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        if self.body_field is None or isinstance(self.body_field.field_info, Form):
            return handle
        kind = self.body_field.field_info.annotation

        async def strict(request: Request) -> Response:
            settings: Settings = request.app.settings
            headers = request.scope[BY_NAME]
            body = await read(request.receive, headers, settings, most=self.most)
            if body:
                demand_json(headers)
            value = parse(body, settings.max_json_depth)
            try:
                return await handle(_Read(request, body, value))
            except RequestValidationError as error:
                errors = error.errors()
                faults, cut = validation_faults(errors[:MAX_LISTED_FAULTS], kind), len(errors) > MAX_LISTED_FAULTS
                faults += await self.further_faults(request, value, faults)
            except InvalidRequest as error:
                faults, cut = [*error.faults], error.cut
                if not faults:
                    raise
            listed = in_document_order(faults[:MAX_LISTED_FAULTS], value)
            cut |= len(faults) > MAX_LISTED_FAULTS
            raise InvalidRequest(summary(listed, CUT) if cut else "", faults=listed)

        return strict

    async def further_faults(self, _request: Request, _body: object, _found: Sequence[Fault]) -> Sequence[Fault]:
        """Faults of a JSON body beyond those of its schema."""
        return ()
