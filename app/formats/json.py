"""The response to a prediction, written as JSON once: `app.schemas.predictions.Prediction`.

Numbers are the shortest that read back as the same float; what is not finite is null.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from app.ml.contract.algorithm import Matrix, Task
from app.ml.evaluation.rejection import Policy
from app.ml.models.model import Model, Predicted
from app.ml.preparation.flags import Flagged
from app.ml.tables.rows import Incoming
from app.store.models import Pointer


class WrittenPrediction(NamedTuple):
    body: bytes
    version: int
    ignored: Sequence[str]
    """Columns that were sent and not used."""
    rows: int
    """That were sent."""


class Extras(NamedTuple):
    """Parts of a response that only some requests ask for."""

    policy: Policy | None = None
    confidence: float | None = None


NO_EXTRAS = Extras()


def as_json(
    pointer: Pointer, model: Model, incoming: Incoming, predicted: Predicted | None, extras: Extras = NO_EXTRAS
) -> WrittenPrediction:
    """`predicted` is of the good rows, None if there are none. Bad rows are null in every list."""
    decisions: list[str] | None = None if extras.policy is None else []
    if extras.policy is not None and predicted is not None:
        predicted, decisions = decided(predicted, extras.policy)
    document: dict[str, Any] = {"predictions": _spread(incoming, predicted.predictions if predicted else [])}
    if extras.confidence is not None:
        document["intervals"] = _spread(incoming, intervals(predicted))
        document["interval"] = model.interval_name
    if model.classes is not None:
        document["classes"] = model.classes
        document["probabilities"] = _spread(incoming, _probabilities(predicted))
    if decisions is not None:
        document["decisions"] = _spread(incoming, decisions)
    document["flags"] = [_flag(incoming, flag) for flag in predicted.flags] if predicted else []
    if incoming.faults:
        document["errors"] = [fault._asdict() for fault in incoming.faults]
    written = orjson.dumps(document, option=orjson.OPT_SERIALIZE_NUMPY)
    return WrittenPrediction(_head(pointer, model.task) + written[1:], pointer.version, incoming.ignored, incoming.rows)


@lru_cache(maxsize=1024)
def _head(pointer: Pointer, task: Task) -> bytes:
    """The names that all responses of a version begin with, up to the comma."""
    names = {"model": pointer.model, "version": pointer.version, "digest": pointer.digest, "task": task.value}
    return orjson.dumps(names)[:-1] + b","


def decided(predicted: Predicted, policy: Policy) -> tuple[Predicted, list[str]]:
    """The classes that the policy assigns, and what becomes of each row."""
    probabilities = predicted.probabilities
    if probabilities is None:
        raise ValueError("Only probabilities can be decided upon.")
    accepted = policy.accepts(probabilities)
    if predicted.unknown is not None:
        accepted[predicted.unknown] = False
    result = predicted._replace(values=policy.assigned(probabilities))
    return result, ["accepted" if one else "rejected" for one in accepted.tolist()]


def intervals(predicted: Predicted | None) -> Matrix:
    """(n, 2), of the good rows."""
    return np.empty((0, 2)) if predicted is None else np.ascontiguousarray(predicted.intervals, np.float64)


def _probabilities(predicted: Predicted | None) -> Sequence[Any] | NDArray[np.float64]:
    return [] if predicted is None else np.ascontiguousarray(predicted.probabilities)


def _spread(incoming: Incoming, answers: Sequence[Any] | NDArray[Any]) -> Sequence[Any] | NDArray[Any]:
    if len(answers) == incoming.rows:
        return answers
    spread = [None] * incoming.rows
    for row, one in zip(incoming.good.tolist(), answers, strict=True):
        spread[row] = one
    return spread


def _flag(incoming: Incoming, flag: Flagged) -> dict[str, Any]:
    rows = flag.rows if incoming.good.size == incoming.rows else incoming.good[flag.rows]
    return {"code": flag.code, **({} if flag.column is None else {"column": flag.column}), "rows": rows}
