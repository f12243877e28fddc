"""Models, their versions and aliases."""

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from fastapi import Header, Query, Response, status
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse

from app.api.edge.etags import matches
from app.api.edge.negotiation import BINARY
from app.api.edge.openapi import declare
from app.api.edge.router import READ_WRITE, Router
from app.api.params.common import (
    PAGE,
    AliasPath,
    Cursor,
    IfMatch,
    Limit,
    ModelPath,
    RequestIdDep,
    ServicesDep,
    VersionPath,
)
from app.schemas.models import Alias, AliasHistory, AliasMove, Model, ModelPage, ModelVersion, Report

if TYPE_CHECKING:
    from collections.abc import Iterator

router = Router(needs=READ_WRITE, prefix="/v1/models", tags=["models"])
ArtifactFormat: TypeAlias = Literal["safetensors", "onnx", "script"]
SUFFIXES: dict[ArtifactFormat, str] = {"safetensors": "safetensors", "onnx": "onnx", "script": "py"}
AS = (
    "`safetensors`: the stored bytes. `onnx`: a graph of ONNX, opset 21 and ai.onnx.ml 5, that computes with 64 bits "
    "and has an input for each column. `script`: one file of Python that needs numpy alone."
)
ETAG = {"ETag": "The revision of the alias in quotes, for If-Match; its number is what X-Min-Revision takes."}


@router.get("")
def list_models(services: ServicesDep, limit: Limit = PAGE, cursor: Cursor = None) -> ModelPage:
    """List models in alphabetical order."""
    return services.models.page(limit, cursor)


@router.get("/{model}")
def get_model(model: ModelPath, services: ServicesDep) -> Model:
    """A model's versions and aliases."""
    return services.models.get(model)


@router.delete("/{model}", status_code=status.HTTP_204_NO_CONTENT)
def delete_model(model: ModelPath, services: ServicesDep) -> None:
    """All versions and aliases. The record of alias moves stays, and the numbers of versions are not used again."""
    services.models.delete(model)


@router.get("/{model}/versions/{version}")
def get_model_version(model: ModelPath, version: VersionPath, services: ServicesDep) -> ModelVersion:
    """One immutable version: its training data, its inputs and its metrics."""
    return services.models.version(model, version)


@router.delete("/{model}/versions/{version}", status_code=status.HTTP_204_NO_CONTENT)
def delete_model_version(model: ModelPath, version: VersionPath, services: ServicesDep) -> None:
    """Refused while an alias points at it."""
    services.models.delete_version(model, version)


@router.get("/{model}/versions/{version}/report")
def get_model_report(model: ModelPath, version: VersionPath, services: ServicesDep) -> Report:
    """Everything learned at fit time."""
    return services.models.report(model, version)


@router.get(
    "/{model}/versions/{version}/artifact",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "The stored bytes, in the safetensors format; or the export.",
            "content": {"application/octet-stream": BINARY},
            **declare(200, {"ETag": "The digest."})[200],
        },
        304: {"description": "The digest is the one in If-None-Match."},
    },
)
async def download_model_artifact(
    model: ModelPath,
    version: VersionPath,
    services: ServicesDep,
    artifact_format: Annotated[ArtifactFormat, Query(alias="as", description=AS)] = "safetensors",
    if_none_match: Annotated[str | None, Header(max_length=4096, description="Digests you have already.")] = None,
) -> Response:
    """The model as it is stored, or exported for other programs with a proof that it predicts the same.

    An export is checked against the version on its golden rows and 200 drawn ones, and refused where it differs.
    `export_unsupported` names the part of a model that cannot be exported.
    """
    if artifact_format == "safetensors":
        pointer = await run_in_threadpool(services.models.pointer, model, version)
        digest, size = pointer.digest, pointer.size_bytes
        content: Iterator[bytes] = services.models.artifact(pointer)
    else:
        served = await services.predictions.serve(model, version)
        export = await run_in_threadpool(services.exports.make, served, artifact_format)
        digest, size, content = export.digest, len(export.content), iter([export.content])
    headers = {"ETag": f'"{digest}"', "Cache-Control": "private, no-cache"}
    if if_none_match is not None and matches(if_none_match, headers["ETag"]):
        return Response(status_code=status.HTTP_304_NOT_MODIFIED, headers=headers)
    headers["Content-Length"] = str(size)
    name = f"{model}-{version}.{SUFFIXES[artifact_format]}"
    headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return StreamingResponse(content, media_type="application/octet-stream", headers=headers)


@router.put(
    "/{model}/aliases/{alias}",
    responses={
        **declare(200, ETAG),
        201: {"model": Alias, "description": "The alias is new.", **declare(201, ETAG)[201]},
    },
)
def move_model_alias(  # noqa: PLR0917  FastAPI passes them by name
    model: ModelPath,
    alias: AliasPath,
    body: AliasMove,
    services: ServicesDep,
    request_id: RequestIdDep,
    response: Response,
    if_match: IfMatch = None,
) -> Alias:
    """Point an alias at a version, which first has to reproduce the predictions of its golden rows."""
    moved, is_new = services.aliases.move(model, alias, body.version, if_match=if_match, request_id=request_id)
    response.headers["ETag"] = moved.etag
    if is_new:
        response.status_code = status.HTTP_201_CREATED
    return moved


@router.get("/{model}/aliases/{alias}/history")
def list_model_alias_moves(
    model: ModelPath, alias: AliasPath, services: ServicesDep, limit: Limit = PAGE, cursor: Cursor = None
) -> AliasHistory:
    """Every move there was, newest first; also of a model that is gone."""
    return services.aliases.history(model, alias, limit, cursor)
