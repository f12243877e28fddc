"""Names that a person gives to the clusters of a model version."""

from fastapi import Response
from fastapi.concurrency import run_in_threadpool

from app.api.edge.openapi import declare
from app.api.edge.router import READ_WRITE, Router
from app.api.params.common import (
    PAGE,
    Cursor,
    IfMatch,
    Limit,
    ModelPath,
    RequestIdDep,
    ServicesDep,
    VersionPath,
)
from app.schemas.cluster_names import ClusterNames, ClusterNamesHistory, ClusterNamesUpdate

router = Router(needs=READ_WRITE, prefix="/v1/models", tags=["models"])
ETAG = {"ETag": "The revision of the names in quotes, for If-Match."}


@router.get("/{model}/versions/{version}/names", responses=declare(200, ETAG))
async def list_cluster_names(
    model: ModelPath, version: VersionPath, services: ServicesDep, response: Response
) -> ClusterNames:
    """Names that a person has given to clusters of a clustering, or to cells of a self-organising map."""
    served = await services.predictions.serve(model, version)
    record = await run_in_threadpool(services.cluster_names.current, served)
    response.headers["ETag"] = record.etag
    return record


@router.put("/{model}/versions/{version}/names", responses=declare(200, ETAG))
async def replace_cluster_names(  # noqa: PLR0917  FastAPI passes them by name
    model: ModelPath,
    version: VersionPath,
    body: ClusterNamesUpdate,
    services: ServicesDep,
    request_id: RequestIdDep,
    response: Response,
    if_match: IfMatch = None,
) -> ClusterNames:
    """Give names to the clusters of a version, or to cells of a map: these, and no others.

    Predictions as JSON or Arrow, cards of clusters and plots have the names at once; in other processes after
    `VALIANT_POINTER_SECONDS` at the latest. The version, its digest and its receipt stay as they are.
    """
    served = await services.predictions.serve(model, version)
    changed = await run_in_threadpool(
        services.cluster_names.replace, served, body.names, if_match=if_match, request_id=request_id
    )
    response.headers["ETag"] = changed.etag
    return changed


@router.get("/{model}/versions/{version}/names/history")
async def list_cluster_name_changes(
    model: ModelPath, version: VersionPath, services: ServicesDep, limit: Limit = PAGE, cursor: Cursor = None
) -> ClusterNamesHistory:
    """Every change of the names of a version, newest first."""
    served = await services.predictions.serve(model, version)
    return await run_in_threadpool(services.cluster_names.history, served, limit, cursor)
