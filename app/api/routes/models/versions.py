"""Versions of all models in one list."""

from typing import Annotated
from uuid import UUID

from fastapi import Query

from app.api.edge.router import READ, Router
from app.api.params.common import PAGE, Cursor, Limit, ServicesDep
from app.schemas.models import VersionPage

router = Router(needs=READ, prefix="/v1/versions", tags=["models"])
Model = Annotated[str | None, Query(pattern=r"^[a-z0-9_-]{1,100}$", description="Only versions of this model.")]
Dataset = Annotated[UUID | None, Query(description="Only versions that were trained on the dataset of this id.")]


@router.get("")
def list_versions(
    services: ServicesDep, limit: Limit = PAGE, cursor: Cursor = None, model: Model = None, dataset: Dataset = None
) -> VersionPage:
    """Versions of all models, newest first, each with its parameters, its aliases and its metrics."""
    return services.models.versions(limit, cursor, model=model, dataset=dataset)
