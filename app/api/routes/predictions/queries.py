"""A route for every query and calculator that there is: of a model version, or without one."""

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from fastapi import Depends, Query, Response
from pydantic import BaseModel

from app.api.edge.openapi import declare
from app.api.edge.router import PREDICT, READ, Router
from app.api.params.common import ModelPath, RequestTimeout, ServicesDep, seconds
from app.api.params.freshness import DESCRIPTION, STALE, MinRevision, MinVersion, stale_header
from app.base.wire import Wire
from app.ml.kinds.query import Options, Subject
from app.ml.operations import QueryEntry, calculator_entries, query_entries
from app.store.models.pointer import Freshness

router = Router(needs=PREDICT)
without_model = Router(needs=READ)
HEADERS = declare(200, {STALE: DESCRIPTION}, optional=(STALE,))


class _ModelQuery:
    """A query to the version that is meant, within the caller's timeout."""

    def __init__(  # noqa: PLR0917  FastAPI passes them by name
        self,
        services: ServicesDep,
        response: Response,
        version: Annotated[int | None, Query(ge=1, lt=2**31, description="This version.")] = None,
        alias: Annotated[
            str | None, Query(pattern=r"^[a-z0-9_-]{1,100}$", description="The version this alias points at.")
        ] = None,
        x_request_timeout: RequestTimeout = None,
        x_min_revision: MinRevision = None,
        x_min_version: MinVersion = None,
    ) -> None:
        self._reference = version, alias, Freshness(x_min_revision or 0, x_min_version or 0)
        self._response = response
        self._services = services
        self._timeout = x_request_timeout

    async def run(self, model: str, entry: QueryEntry, body: BaseModel, options: Mapping[str, Any]) -> Wire:
        """Off the event loop, in turn with other large predictions."""
        async with self._services.admission.enter(seconds(self._timeout)) as place:
            served = await self._services.predictions.serve(model, *self._reference)
            for name, value in stale_header(served):
                self._response.headers[name.decode()] = value.decode()
            most, pointer = self._services.settings.max_predict_rows, served.pointer
            subject = Subject(pointer.model, pointer.version, pointer.digest, served.model, most, pointer.names)
            return await place.run(lambda: entry.run(subject, body, options))


def _options(kind: type[Options]) -> Callable[..., Mapping[str, Any]]:
    """A dependency that takes the fields of the options from the address."""

    def values(**options: object) -> Mapping[str, Any]:
        return options

    parameters = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=Annotated[field.annotation, *field.metadata, Query(description=field.description)],
        )
        for name, field in kind.model_fields.items()
    ]
    values.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # FastAPI reads it
    return values


def _of_model(entry: QueryEntry) -> Callable[..., Any]:
    query = entry.query

    async def run(
        model: ModelPath,
        options: Annotated[Mapping[str, Any], Depends(_options(query.options))],
        version: Annotated[_ModelQuery, Depends()],
        body: query.request,  # type: ignore[name-defined]  # known when the route is made
    ) -> Wire:
        return await version.run(model, entry, body, options)

    return run


def _without_model(entry: QueryEntry) -> Callable[..., Any]:
    query = entry.query

    def run(
        body: query.request,  # type: ignore[name-defined]  # as above
        options: Annotated[Mapping[str, Any], Depends(_options(query.options))],
    ) -> Wire:
        return query.run(body, **options)

    return run


def _serve(entry: QueryEntry) -> None:
    query = entry.query
    (without_model if query.path else router).add_api_route(
        query.path or f"/v1/models/{{model}}/{entry.name}",
        _without_model(entry) if query.path else _of_model(entry),
        methods=["POST"],
        name=query.operation,
        response_model=query.response,
        responses=None if query.path else HEADERS,
        description=entry.description,
        tags=[query.tag],
    )


for _entry in (*query_entries().values(), *calculator_entries().values()):
    _serve(_entry)
router.take(without_model)
