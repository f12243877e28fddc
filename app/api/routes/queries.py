"""Queries of any model: sweeps, tangents, intervals and explanations of predictions."""

from collections.abc import Callable
from typing import Annotated, TypeVar

from fastapi import APIRouter, Depends, Query, Response

from app.api.edge.openapi import declare
from app.api.edge.strict_route import StrictRoute
from app.api.params.common import CONFIDENCE, ModelPath, RequestTimeout, ServicesDep, seconds
from app.api.params.freshness import DESCRIPTION, STALE, MinRevision, stale_header
from app.formats.prediction import Version
from app.ml.models.model import Model
from app.schemas.predictions import PredictRequest
from app.schemas.queries import Explanations, Intervals, Linearisation, LineariseRequest, Sweep, SweepRequest
from app.services.queries import WhatIf

router = APIRouter(prefix="/v1/models", tags=["predictions"], route_class=StrictRoute)
HEADERS = declare(200, {STALE: DESCRIPTION}, optional=(STALE,))
T = TypeVar("T")


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
    ) -> None:
        self._reference = version, alias, x_min_revision or 0
        self._response = response
        self._services = services
        self._timeout = x_request_timeout

    async def run_query(self, model: str, query: Callable[[WhatIf, Version, Model], T]) -> T:
        """Off the event loop, in turn with other large predictions."""
        async with self._services.admission.enter(seconds(self._timeout)) as place:
            served = await self._services.predictions.serve(model, *self._reference)
            for name, value in stale_header(served):
                self._response.headers[name.decode()] = value.decode()
            return await place.run(lambda: query(self._services.whatif, served.pointer, served.model), large=True)


ModelQuery = Annotated[_ModelQuery, Depends()]


@router.post("/{model}/sweep", responses=HEADERS)
async def sweep_model(model: ModelPath, query: ModelQuery, body: SweepRequest) -> Sweep:
    """The response surface: predictions over a grid of one to three inputs, the others held fixed."""
    return await query.run_query(model, lambda whatif, version, loaded: whatif.sweep(version, loaded, body))


@router.post("/{model}/linearise", responses=HEADERS)
async def linearise_model(model: ModelPath, query: ModelQuery, body: LineariseRequest) -> Linearisation:
    """The tangent of the model at a row, by central differences, and from where to where it can be trusted."""
    return await query.run_query(model, lambda whatif, version, loaded: whatif.linearise(version, loaded, body))


@router.post("/{model}/intervals", responses=HEADERS)
async def estimate_intervals(
    model: ModelPath,
    query: ModelQuery,
    body: PredictRequest,
    confidence: Annotated[float, CONFIDENCE] = 0.95,
) -> Intervals:
    """Predictions of a regression with error bars, readable too; `predict` describes what they bound."""
    sent = body.model_dump(mode="python")
    return await query.run_query(
        model, lambda whatif, version, loaded: whatif.intervals(version, loaded, sent, confidence)
    )


@router.post("/{model}/explain", responses=HEADERS)
async def explain_rows(model: ModelPath, query: ModelQuery, body: PredictRequest) -> Explanations:
    """Explain predictions: the path through a tree, the neighbours, the shares of members or stages,
    the local coefficients. At most 32 MiB of it.
    """
    sent = body.model_dump(mode="python")
    return await query.run_query(model, lambda whatif, version, loaded: whatif.explain(version, loaded, sent))
