"""The response to a prediction as an array (npy), or as a table (an Arrow stream): no text, no rounding."""

import io
from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from app.formats.json import NO_EXTRAS, Extras, WrittenPrediction, decided, intervals
from app.ml.models.model import Model, Predicted
from app.ml.tables.rows import Incoming
from app.store.models import Pointer


def as_npy(
    pointer: Pointer, model: Model, incoming: Incoming, predicted: Predicted | None, extras: Extras = NO_EXTRAS
) -> WrittenPrediction:
    """float64: the probabilities (n, k) of a classification, a column per class; else the predictions, (n,) or (n, p).

    With intervals (n, 3): prediction, lower, upper. Bad rows are NaN. What a policy decides has no place here.
    """
    values = _numbers(model, predicted)
    if extras.confidence is not None:
        values = np.column_stack([values, intervals(predicted)])
    values = _spread(incoming, values)
    body = _npy_header(values.shape) + values.astype("<f8", copy=False).tobytes()
    return WrittenPrediction(body, pointer.version, incoming.ignored, incoming.rows)


@lru_cache(maxsize=256)
def _npy_header(shape: tuple[int, ...]) -> bytes:
    file = io.BytesIO()
    npy_format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return file.getvalue()


def as_arrow(
    pointer: Pointer, model: Model, incoming: Incoming, predicted: Predicted | None, extras: Extras = NO_EXTRAS
) -> WrittenPrediction:
    """A row for each row sent: `prediction`, a `probability_…` for each class, and `flags`.

    On request: `lower` and `upper`, infinite where nothing bounds the prediction, and `decision`. A flag is its code,
    and the column after a colon. Bad rows are null, their flag is the code of the fault.
    """
    decisions: list[str] = []
    if extras.policy is not None and predicted is not None:
        predicted, decisions = decided(predicted, extras.policy)
    columns = {"prediction": _predictions(model, predicted)}
    if extras.confidence is not None:
        columns |= zip(("lower", "upper"), map(pa.array, intervals(predicted).T), strict=True)
    if model.classes is not None:
        names = [f"probability_{label}" for label in model.classes]
        columns |= zip(names, map(pa.array, _numbers(model, predicted).T), strict=True)
    if extras.policy is not None:
        columns["decision"] = pa.array(decisions, pa.string())
    columns = {name: _placed(incoming, values) for name, values in columns.items()}
    columns["flags"] = _flags(incoming, predicted)
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
    return WrittenPrediction(sink.getvalue().to_pybytes(), pointer.version, incoming.ignored, incoming.rows)


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


def _predictions(model: Model, predicted: Predicted | None) -> pa.Array:
    """Of the good rows: as `Predicted.predictions`."""
    if model.classes is not None:
        codes = np.zeros(0, np.intp) if predicted is None else predicted.values
        unknown = np.zeros(codes.size, np.bool_)
        if predicted is not None and predicted.unknown is not None:
            unknown[predicted.unknown] = True
        return pa.array(model.classes).take(pa.array(codes, mask=unknown))
    values = np.zeros(0) if predicted is None else np.ascontiguousarray(predicted.values)
    if values.ndim == 1:
        return pa.array(values)
    ends = np.arange(len(values) + 1, dtype=np.int32) * np.int32(values.size // len(values))
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(values.ravel()))


def _placed(incoming: Incoming, values: pa.Array) -> pa.Array:
    """The flags of the good rows, null elsewhere."""
    if len(values) == incoming.rows:
        return values
    places, bad = np.zeros(incoming.rows, np.intp), np.ones(incoming.rows, np.bool_)
    places[incoming.good], bad[incoming.good] = np.arange(len(values)), False
    return values.take(pa.array(places, mask=bad))


def _flags(incoming: Incoming, predicted: Predicted | None) -> pa.Array:
    """A list of texts for each row."""
    messages = [
        (flag.code if flag.column is None else f"{flag.code}:{flag.column}", incoming.good[flag.rows])
        for flag in (predicted.flags if predicted else ())
    ]
    messages += [(fault.code, np.array([int(fault.pointer.split("/")[2])])) for fault in incoming.faults]
    rows = np.concatenate([np.zeros(0, np.intp), *(rows for _, rows in messages)])
    which = np.repeat(np.arange(len(messages)), [rows.size for _, rows in messages])
    ends = np.append(0, np.bincount(rows, minlength=incoming.rows).cumsum()).astype(np.int32)
    texts = pa.array([text for text, _ in messages], pa.string()).take(pa.array(which[rows.argsort(kind="stable")]))
    return pa.ListArray.from_arrays(pa.array(ends), texts)
