"""A few rows as a client sends them, with the model's predictions when it was fitted.

A version whose bytes no longer give these predictions does not go live.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from app.base.errors import GoldenMismatch, ValiantError
from app.ml.contract.algorithm import JSON, Labels, Matrix
from app.ml.evaluation.splits import evenly
from app.ml.models.included_outputs import predict_with
from app.ml.models.model import Model, Predicted
from app.ml.preparation.target import EXACT
from app.ml.tables.rows import read_rows

ROWS = 8
TOLERANCE = 1e-9
"""Tolerance relative to the largest number beside it, for what another processor's rounding may change."""


def spaced(rows: Labels) -> Labels:
    """Up to `ROWS` of these, far from each other: classes often come in order."""
    return rows[evenly(rows.size, ROWS)]


def record_golden(model: Model, table: pa.Table) -> dict[str, Any]:
    """The rows of the table and the model's predictions: {"columns", "data", "predictions", "probabilities"?,
    "outputs"?}.
    """
    names = [column.name for column in model.inputs]
    columns = [[as_sent(value) for value in table.column(name).to_pylist()] for name in names]
    golden = {"columns": names, "data": [list(row) for row in zip(*columns, strict=True)]}
    return golden | _predictions(_predict(model, golden))


def check_golden(model: Model, golden: Mapping[str, Any]) -> None:
    """Raises GoldenMismatch unless the model gives the recorded predictions: labels exactly, numbers to `TOLERANCE`."""
    try:
        predictions = _predictions(_predict(model, golden))
        model.predict_raw(model.preparation.no_values)  # one row, and gaps, may need other compiled code
    except (ValiantError, ValueError, TypeError, IndexError, ArithmeticError) as error:
        raise GoldenMismatch("The model does not reproduce the predictions of its golden rows.") from error
    exact = model.task.of_classes or model.task.labels
    if exact and predictions["predictions"] != golden["predictions"]:
        raise GoldenMismatch
    for name in ("probabilities",) if exact else ("predictions",):
        if not _close(predictions.get(name), golden.get(name)):
            raise GoldenMismatch
    recorded, now = golden.get("outputs", {}), predictions.get("outputs", {})  # earlier releases recorded none
    for name, values in recorded.items():
        size = model.algorithm.outputs[name].size if name in now else None
        if not _close(now.get(name), values, 0.0 if size is None else size(model.params, model.state)):
            raise GoldenMismatch


def golden_table(model: Model, golden: Mapping[str, Any]) -> pa.Table | Matrix:
    """The rows as a table of the model's inputs, or as the raw matrix."""
    # The database writes 1e16 with all its digits, and reads a whole number.
    body = {"columns": golden["columns"], "data": [[as_sent(cell) for cell in row] for row in golden["data"]]}
    return read_rows(body, model.inputs, max_rows=len(golden["data"])).table


def _predict(model: Model, golden: Mapping[str, Any]) -> Predicted:
    return predict_with(model, golden_table(model, golden), list(model.algorithm.outputs))


def _predictions(predicted: Predicted) -> dict[str, Any]:
    predictions = {"predictions": _finite(predicted.predictions)}
    if predicted.probabilities is not None:
        predictions["probabilities"] = _finite(predicted.probabilities.tolist())
    if predicted.outputs:
        numbers = {name: values for name, values in predicted.outputs.items() if values.dtype != np.bool_}
        predictions["outputs"] = {name: _finite(values.tolist()) for name, values in numbers.items()}
    return predictions


def _finite(value: JSON) -> JSON:
    if isinstance(value, list):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _close(now: JSON, then: JSON, size: float = 0.0) -> bool:
    """size: of the numbers of which these are differences."""
    if now is None or then is None:
        return now is then
    ours, theirs = np.array(now, np.float64), np.array(then, np.float64)  # null is NaN
    if ours.shape != theirs.shape:
        return False
    reach = TOLERANCE * np.nanmax(np.abs(theirs), initial=size)
    return bool(np.allclose(ours, theirs, rtol=TOLERANCE, atol=reach, equal_nan=True))


def as_sent(value: Any) -> JSON:
    """A cell of a table as a client sends it in JSON."""
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, float) and np.isnan(value):
        return None
    return float(value) if type(value) is int and abs(value) > EXACT else value
