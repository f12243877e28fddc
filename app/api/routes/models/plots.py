"""Plots of a model version, as Vega-Lite specifications and as pictures."""

import hashlib
from typing import Annotated, Any

from fastapi import Header, Path, Query, Response, status
from fastapi.concurrency import run_in_threadpool

from app.api.edge.etags import matches
from app.api.edge.negotiation import BINARY, JSON, preferred
from app.api.edge.openapi import declare
from app.api.edge.router import READ, Router
from app.api.params.common import ModelPath, ServicesDep, VersionPath
from app.ml.charts.themes import Theme
from app.rendering.protocol import PictureFormat
from app.schemas.plots import PlotList, PlotSpecification

router = Router(needs=READ, prefix="/v1/models", tags=["models"])
SVG, PNG = "image/svg+xml", "image/png"
PICTURES: dict[str, PictureFormat] = {SVG: "svg", PNG: "png"}
MEDIA_TYPES = JSON, SVG, PNG
ACCEPT = (
    f"Media types of the plot that the caller takes, as in RFC 9110: {', '.join(MEDIA_TYPES)}. Null: the first of them."
)
PLOT: dict[int | str, dict[str, Any]] = declare(200, {"ETag": "The digest of the plot in this format."})
PLOT[200] |= {"content": dict.fromkeys(PICTURES, BINARY), "description": "The plot."}
PLOT[304] = {"description": "The digest is one of those in If-None-Match."}
PlotName = Annotated[str, Path(pattern=r"^[a-z0-9_]{1,100}$", description="Name of the plot.")]
ThemeQuery = Annotated[Theme, Query(description="Colours for a light or a dark background.")]
"""With a default: `theme: ThemeQuery = "light"`."""


@router.get("/{model}/versions/{version}/plots")
async def list_model_plots(model: ModelPath, version: VersionPath, services: ServicesDep) -> PlotList:
    """List the plots of a version: those for which it has data, by name."""
    served = await services.predictions.serve(model, version)
    return await run_in_threadpool(services.plots.page, served)


@router.get("/{model}/versions/{version}/plots/{name}", response_model=PlotSpecification, responses=PLOT)
async def draw_model_plot(  # noqa: PLR0917  FastAPI passes them by name
    model: ModelPath,
    version: VersionPath,
    name: PlotName,
    services: ServicesDep,
    theme: ThemeQuery = "light",
    accept: Annotated[str | None, Header(max_length=4096, description=ACCEPT)] = None,
    if_none_match: Annotated[str | None, Header(max_length=4096, description="Digests you have already.")] = None,
) -> Response:
    """One plot of a version by `Accept`: a Vega-Lite specification that holds its data, or a picture of it.

    A PNG has two pixels for each pixel of the specification.
    """
    media_type = preferred(accept or "*/*", MEDIA_TYPES)
    served = await services.predictions.serve(model, version)
    specification = await run_in_threadpool(services.plots.specification, served, name, theme)
    headers = {"ETag": _etag(specification, media_type), "Cache-Control": "private, no-cache", "Vary": "Accept"}
    if if_none_match is not None and matches(if_none_match, headers["ETag"]):
        return Response(status_code=status.HTTP_304_NOT_MODIFIED, headers=headers)
    if media_type == JSON:
        return Response(specification, media_type=JSON, headers=headers)
    picture = await run_in_threadpool(services.plots.picture, specification, PICTURES[media_type])
    return Response(picture, media_type=media_type, headers=headers)


def _etag(specification: str, media_type: str) -> str:
    return f'"{hashlib.sha256(f"{media_type} {specification}".encode()).hexdigest()}"'
