"""The answer to a prediction, written as JSON once: `app.schemas.predictions.Prediction`.

Numbers are the shortest that read back as the same float; what is not finite is null.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from app.errors import Fault
from app.ml.model import Model, Predicted
from app.ml.preparation import Flagged
from app.store.models import Pointer


class Answer(NamedTuple):
    body: bytes
    """JSON."""
    version: int
    ignored: Sequence[str]
    """Columns that were sent and not used."""


class Answered(NamedTuple):
    """Which rows of a request the answers are of: `app.ml.rows.Incoming` without its table."""

    rows: int
    good: NDArray[np.intp]
    faults: Sequence[Fault]
    ignored: Sequence[str]


def answer(pointer: Pointer, model: Model, incoming: Answered, predicted: Predicted | None) -> Answer:
    """`predicted` is of the good rows, None if there are none. Bad rows are null in every list."""
    document: dict[str, Any] = {
        "model": pointer.model,
        "version": pointer.version,
        "digest": pointer.digest,
        "task": model.task.value,
        "predictions": _spread(incoming, predicted.predictions if predicted else []),
    }
    if model.classes is not None:
        document["classes"] = model.classes
        document["probabilities"] = _spread(incoming, _probabilities(predicted))
    document["flags"] = [_flag(incoming, flag) for flag in predicted.flags] if predicted else []
    if incoming.faults:
        document["errors"] = [fault._asdict() for fault in incoming.faults]
    return Answer(orjson.dumps(document, option=orjson.OPT_SERIALIZE_NUMPY), pointer.version, incoming.ignored)


def _probabilities(predicted: Predicted | None) -> Sequence[Any] | NDArray[np.float64]:
    return [] if predicted is None else np.ascontiguousarray(predicted.probabilities)


def _spread(incoming: Answered, answers: Sequence[Any] | NDArray[Any]) -> Sequence[Any] | NDArray[Any]:
    if len(answers) == incoming.rows:
        return answers
    spread = [None] * incoming.rows
    for row, one in zip(incoming.good.tolist(), answers, strict=True):
        spread[row] = one
    return spread


def _flag(incoming: Answered, flag: Flagged) -> dict[str, Any]:
    column = {} if flag.column is None else {"column": flag.column}
    return {"code": flag.code, **column, "rows": incoming.good[flag.rows]}
