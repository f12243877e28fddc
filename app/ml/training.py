"""From a table and a request to a fitted model, its report and its golden rows. Pure: no I/O."""

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias, Union

import pyarrow as pa
from pydantic import Field

from app.ml.catalogue import catalogue
from app.ml.contract import Params, Progress, Task, silent
from app.ml.evaluation import Validation
from app.ml.preparation import Preprocessing
from app.ml.report import Report
from app.wire import Body

if TYPE_CHECKING:
    AlgorithmSpec: TypeAlias = Params
else:
    # One member per file of the catalogue, told apart by `name`.
    AlgorithmSpec = Annotated[
        Union[tuple(entry.spec for entry in catalogue().values())],  # noqa: UP007
        Field(discriminator="name"),
    ]


class TrainSpec(Body):
    """Which columns, which algorithm, prepared and judged how."""

    target: str | None = Field(None, description="The column to predict; absent for unsupervised learning.")
    features: list[str] | None = Field(
        None, min_length=1, description="Absent: every column but the target, the weights and identifier-like ones."
    )
    weights: str | None = Field(None, description="A numeric column of positive row weights.")
    task: Task | None = Field(None, description="Absent: regression for a numeric target, else classification.")
    algorithm: AlgorithmSpec
    preprocessing: Preprocessing = Preprocessing()
    validation: Validation = Validation()
    seed: int = Field(0, ge=0, lt=2**63, description="Same seed, same bytes.")


class Trained(NamedTuple):
    blob: bytes
    report: Report
    golden: dict[str, Any]
    """{"columns": […], "data": [[…]], "predictions": […]}: a few rows as a client would send them."""


def train(
    spec: TrainSpec, table: pa.Table, *, kinds: dict[str, str], data_digest: str, progress: Progress = silent
) -> Trained:
    """Split, prepare, fit, evaluate, encode."""
    raise NotImplementedError
