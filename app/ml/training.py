"""From a table and a request to a fitted model, its report and its golden rows. Pure: no I/O."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from app.ml.planning import Plan, TrainSpec, plan
from app.ml.report import Report
from app.ml.schema import TableColumn


class Reporter(Protocol):
    """Hears how far a training is."""

    def __call__(self, fraction: float, message: str, measures: Mapping[str, float]) -> None:
        """`fraction`: 0 to 1, never going back. `message`: what is being done. `measures`: a point of each curve."""


def unheard(fraction: float, message: str, measures: Mapping[str, float]) -> None:
    """A `Reporter` that nobody listens to."""


class Trained(NamedTuple):
    blob: bytes
    """The model, as `app.ml.model.encode` wrote it."""
    report: Report
    golden: dict[str, Any]
    """{"columns": […], "data": [[…]], "predictions": […], "probabilities": [[…]]?}: rows as a client sends them."""


def train(
    spec: TrainSpec,
    table: pa.Table,
    *,
    columns: Sequence[TableColumn],
    data_digest: str,
    progress: Reporter = unheard,
) -> Trained:
    """Split, prepare, fit, evaluate, encode.

    table: the whole dataset. columns: the data sheet it came with. data_digest: goes into the receipt.

    Raises InvalidRequest for what `plan` finds, InvalidData for rows that cannot be used, naming them.
    """
    raise NotImplementedError


__all__ = ["Plan", "Reporter", "TrainSpec", "Trained", "plan", "train", "unheard"]
