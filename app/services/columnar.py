"""The answer to a prediction as an array (npy), or as a table (an Arrow stream): no text, no rounding."""

import io
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from app.ml.model import Model, Predicted
from app.ml.rows import Incoming
from app.services.answers import NO_EXTRAS, Answer, Extras, decided, intervals
from app.store.models import Pointer


def as_npy(
    pointer: Pointer, model: Model, incoming: Incoming, predicted: Predicted | None, extras: Extras = NO_EXTRAS
) -> Answer:
    """float64: the probabilities (n, k) of a classification, a column per class; else the predictions, (n,) or (n, p).

    With intervals (n, 3): prediction, lower, upper. Bad rows are NaN. What a policy decides has no place here.
    """
    values = _numbers(model, predicted)
    if extras.confidence is not None:
        values = np.column_stack([values, intervals(predicted)])
    values = _spread(incoming, values)
    return Answer(
        _npy_header(values.shape) + values.astype("<f8", copy=False).tobytes(), pointer.version, incoming.ignored
    )


@lru_cache(maxsize=256)
def _npy_header(shape: tuple[int, ...]) -> bytes:
    file = io.BytesIO()
    npy_format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return file.getvalue()


def as_arrow(
    pointer: Pointer, model: Model, incoming: Incoming, predicted: Predicted | None, extras: Extras = NO_EXTRAS
) -> Answer:
    """A row for each row sent: `prediction`, a `probability_…` for each class, and `flags`.

    Where asked for: `lower` and `upper`, infinite where nothing bounds the answer, and `decision`. A flag is its code,
    and the column after a colon. Bad rows are null, their flag is the code of the fault.
    """
    decisions: list[str] = []
    if extras.policy is not None and predicted is not None:
        predicted, decisions = decided(predicted, extras.policy)
    columns = {"prediction": _placed(incoming, predicted.predictions if predicted else [])}
    if extras.confidence is not None:
        for place, name in enumerate(("lower", "upper")):
            columns[name] = _placed(incoming, intervals(predicted)[:, place].tolist(), pa.float64())
    if model.classes is not None:
        values = _numbers(model, predicted)
        for place, label in enumerate(model.classes):
            columns[f"probability_{label}"] = _placed(incoming, values[:, place].tolist(), pa.float64())
    if extras.policy is not None:
        columns["decision"] = _placed(incoming, decisions, pa.string())
    columns["flags"] = pa.array(_flags(incoming, predicted), pa.list_(pa.string()))
    of = {
        "model": pointer.model,
        "version": str(pointer.version),
        "digest": pointer.digest,
        "task": model.task.value,
    }
    table = pa.table(columns).replace_schema_metadata(of)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return Answer(sink.getvalue().to_pybytes(), pointer.version, incoming.ignored)


def _numbers(model: Model, predicted: Predicted | None) -> NDArray[np.float64]:
    """Of the good rows."""
    if predicted is None:
        return np.empty((0, len(model.classes or ())) if model.classes is not None else 0)
    values = predicted.values if predicted.probabilities is None else predicted.probabilities
    return np.ascontiguousarray(values, np.float64)


def _spread(incoming: Incoming, values: NDArray[np.float64]) -> NDArray[np.float64]:
    if len(values) == incoming.rows:
        return values
    spread = np.full((incoming.rows, *values.shape[1:]), np.nan)
    spread[incoming.good] = values
    return spread


def _placed(incoming: Incoming, values: list[Any], kind: pa.DataType | None = None) -> pa.Array:
    placed: list[Any] = [None] * incoming.rows
    for row, value in zip(incoming.good.tolist(), values, strict=True):
        placed[row] = value
    return pa.array(placed, kind)


def _flags(incoming: Incoming, predicted: Predicted | None) -> list[list[str]]:
    flags: list[list[str]] = [[] for _ in range(incoming.rows)]
    for flag in predicted.flags if predicted else ():
        text = flag.code if flag.column is None else f"{flag.code}:{flag.column}"
        for row in incoming.good[flag.rows].tolist():
            flags[row].append(text)
    for fault in incoming.faults:
        flags[int(fault.pointer.split("/")[2])].append(fault.code)
    return flags
