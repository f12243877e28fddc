"""Models, their versions and aliases on the wire."""

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from app.base.wire import Body, Wire
from app.ml.contract.columns import InputColumn
from app.ml.contract.labels import Label
from app.ml.contract.stage_clock import StageSeconds
from app.ml.contract.task import DESCRIPTION as TASK
from app.ml.evaluation.report import Report
from app.ml.statistics.metric_value import Metric
from app.schemas.algorithms import OutputCard


class Alias(Wire):
    """Alias: a name that points at a version."""

    alias: str = Field(description="Name of the alias.")
    version: int = Field(description="Version that the alias points at.")
    revision: int = Field(description="Number of moves of this alias so far; predictions take it in X-Min-Revision.")
    updated_at: datetime = Field(description="Time of its last move, in UTC.")
    etag: str = Field(description="Send it in If-Match to move the alias only if nobody else has.")


class Model(Wire):
    """Model: a name with versions and aliases."""

    name: str = Field(description="Name of the model.")
    created_at: datetime = Field(description="Time of creation, in UTC.")
    latest_version: int | None = Field(None, description="Newest version.")
    versions: list[int] = Field(description="Versions, in ascending order.")
    aliases: list[Alias] = Field(description="Aliases of the model.")


class ModelPage(Wire):
    """Page of models."""

    items: list[Model] = Field(description="Items of this page.")
    next_cursor: str | None = Field(None, description="Cursor of the next page; null on the last page.")


class ModelVersion(Wire):
    """One immutable version."""

    model: str = Field(description="Name of the model.")
    version: int = Field(description="Version of the model, counted from 1.")
    created_at: datetime = Field(description="Time of creation, in UTC.")
    algorithm: str = Field(description="Name of the algorithm.")
    task: str = Field(description=TASK)
    parameters: dict[str, Any] = Field(
        description="Parameters of the algorithm, with those that were chosen by default."
    )
    target: str | None = Field(None, description="Column that is predicted; null: there is none.")
    classes: list[Label] | None = Field(
        None, description="Classes in the order of the probabilities; null where there are none."
    )
    inputs: list[InputColumn] = Field(description="Inputs of the model, in its order.")
    outputs: list[OutputCard] = Field(
        [], description="Further values of a row that `include` of a prediction names; empty where there are none."
    )
    metrics: list[Metric] = Field(
        description="Metrics on the test rows; on the training rows where no rows were held out."
    )
    dataset: UUID | None = Field(
        None,
        description="Id of the dataset of its training, which may have been deleted; null: it has none, as "
        "an imported model.",
    )
    dataset_digest: str = Field(
        description="SHA-256 of the dataset of its training; of a session, that of its state when it was published; of "
        "an imported model, that of its file."
    )
    job: UUID | None = Field(None, description="Id of the job that made the version; null: a session did.")
    session: UUID | None = Field(
        None, description="Id of the online session that it was published from; null: a job made it."
    )
    receipt: dict[str, Any] = Field(
        description="Seed, data digest, parameters, library versions, class of the processor: same receipt, same bytes."
    )
    digest: str = Field(description="sha256: of the stored bytes.")
    size_bytes: int = Field(description="Size of the model, in bytes.")
    warnings: list[str] = Field(
        [], description="Sentences on what a careful reader should know; empty where there is none."
    )


class VersionSummary(Wire):
    """One version in a list of versions."""

    model: str = Field(description="Name of the model.")
    version: int = Field(description="Version of the model, counted from 1.")
    created_at: datetime = Field(description="Time of creation, in UTC.")
    algorithm: str = Field(description="Name of the algorithm.")
    task: str = Field(description=TASK)
    parameters: dict[str, Any] = Field(
        description="Parameters of the algorithm, with those that were chosen by default."
    )
    target: str | None = Field(None, description="Column that is predicted; null: there is none.")
    dataset: UUID | None = Field(
        None, description="Id of the dataset of its training, which may have been deleted; null: it has none."
    )
    job: UUID | None = Field(None, description="Id of the job that made the version; null: a session did.")
    session: UUID | None = Field(
        None, description="Id of the online session that it was published from; null: a job made it."
    )
    aliases: list[str] = Field(description="Aliases that point at the version.")
    metrics: list[Metric] = Field(
        description="Metrics on the test rows, or on the training rows where no rows were held out, without those of "
        "single classes."
    )
    stages: StageSeconds | None = Field(
        None,
        description="Seconds of each stage of the job that made it. Null: no job did, or one of an earlier release.",
    )
    size_bytes: int = Field(description="Size of the model, in bytes.")


class VersionPage(Wire):
    """Page of versions of all models."""

    items: list[VersionSummary] = Field(description="Items of this page.")
    next_cursor: str | None = Field(None, description="Cursor of the next page; null on the last page.")


class AliasMove(Body):
    """The version to which an alias shall point."""

    version: int = Field(ge=1, lt=2**31, description="Version that the alias shall point at.")


class AliasRecord(Wire):
    """One line of an alias's history."""

    at: datetime = Field(description="Time of the move, in UTC.")
    version: int = Field(description="Version that the alias points at since then.")
    previous_version: int | None = Field(
        None, description="Version that the alias pointed at before; null: the alias was new."
    )
    request_id: str | None = Field(None, description="Id of the request that moved the alias.")


class AliasHistory(Wire):
    """Page of moves of an alias, newest first."""

    items: list[AliasRecord] = Field(description="Items of this page.")
    next_cursor: str | None = Field(None, description="Cursor of the next page; null on the last page.")


__all__ = [
    "Alias",
    "AliasHistory",
    "AliasMove",
    "AliasRecord",
    "Metric",
    "Model",
    "ModelPage",
    "ModelVersion",
    "Report",
    "VersionPage",
    "VersionSummary",
]
