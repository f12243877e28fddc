"""Models, their versions and aliases on the wire."""

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from app.ml.contract.columns import InputColumn
from app.ml.contract.labels import Label
from app.ml.evaluation.report import Report
from app.ml.statistics.figures import Figure
from app.wire import Body, Wire


class Alias(Wire):
    alias: str
    version: int
    revision: int = Field(description="Number of moves of this alias so far; predictions take it in X-Min-Revision.")
    updated_at: datetime
    etag: str = Field(description="Send it in If-Match to move the alias only if nobody else has.")


class Model(Wire):
    name: str
    created_at: datetime
    latest_version: int | None = None
    versions: list[int]
    aliases: list[Alias]


class ModelPage(Wire):
    items: list[Model]
    next_cursor: str | None = None


class ModelVersion(Wire):
    """One immutable version."""

    model: str
    version: int
    created_at: datetime
    algorithm: str
    task: str
    parameters: dict[str, Any]
    target: str | None = None
    classes: list[Label] | None = None
    inputs: list[InputColumn]
    metrics: list[Figure] = Field(description="On rows the model has not seen.")
    dataset: UUID
    dataset_digest: str
    job: UUID
    receipt: dict[str, Any] = Field(
        description="Seed, data digest, parameters, library versions: same receipt, same bytes."
    )
    digest: str = Field(description="sha256: of the stored bytes.")
    size_bytes: int
    warnings: list[str] = []


class AliasMove(Body):
    """Where an alias shall point."""

    version: int = Field(ge=1, lt=2**31)


class AliasRecord(Wire):
    """One line of an alias's history."""

    at: datetime
    version: int
    previous_version: int | None = None
    request_id: str | None = None


class AliasHistory(Wire):
    items: list[AliasRecord]
    next_cursor: str | None = None


__all__ = [
    "Alias",
    "AliasHistory",
    "AliasMove",
    "AliasRecord",
    "Figure",
    "Model",
    "ModelPage",
    "ModelVersion",
    "Report",
]
