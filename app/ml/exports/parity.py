"""Proof of an export: the version's predictions of golden and drawn rows, beside those of the exported file."""

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from app.ml.contract.algorithm import Matrix
from app.ml.contract.columns import InputColumn
from app.ml.contract.export_errors import ExportMismatch
from app.ml.exports.exported_graph import ExportedGraph
from app.ml.exports.graph_script import run_graph
from app.ml.exports.numpy_script import graph_steps
from app.ml.models.model import Model
from app.ml.preparation.arrow_columns import UNSEEN

ROWS = 200
"""Drawn rows beside the golden ones."""
TOLERANCE = 1e-10
"""Largest difference relative to the largest number of a column; 1e-12 is usual. More is refused."""
MISSING = 0.1
"""Share of missing values in half of the drawn rows."""


class Parity(NamedTuple):
    rows: int
    engine: str
    """Library and release that predicted, beside the version."""
    largest_difference: float
    """Relative to the largest number of the column."""
    undefined: int
    """Rows that the file does not predict: a missing value goes both ways in a tree."""


def drawn_rows(model: Model, seed: int = 0) -> Matrix:
    """(n, p) raw rows within the ranges of the training rows, the second half with missing values and unseen levels."""
    rng = np.random.Generator(np.random.PCG64(seed))
    absent = model.preparation.codes.absent.tolist()
    columns = [_drawn(column, code, rng) for column, code in zip(model.inputs, absent, strict=True)]
    raw = np.column_stack(columns)
    half = raw[ROWS // 2 :]
    half[rng.random(half.shape) < MISSING] = np.nan
    return raw


def input_columns(inputs: Sequence[InputColumn], raw: Matrix) -> dict[str, Any]:
    """Columns (n, 1) as an exported graph takes them: numbers, or texts, of which "" is missing."""
    return {column.name: _column(column, values) for column, values in zip(inputs, raw.T, strict=True)}


def compare_numpy(model: Model, exported: ExportedGraph, raw: Matrix) -> Parity:
    """With the operations of the script. Raises ExportMismatch."""
    steps, arrays = graph_steps(exported)
    outputs = {name: tensor.place for name, tensor in exported.outputs.items()}
    predictions = run_graph(steps, arrays, outputs, input_columns(exported.inputs, raw))
    return _compared(model, predictions, raw, f"numpy {np.__version__}")


def compare_onnx(model: Model, exported: ExportedGraph, content: bytes, raw: Matrix) -> Parity:
    """With onnxruntime, else with numpy where it is not installed. Raises ExportMismatch."""
    try:
        runtime: Any = importlib.import_module("onnxruntime")
    except ImportError:
        return compare_numpy(model, exported, raw)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    feed = {
        name: column.astype(object) if column.dtype.kind == "U" else column
        for name, column in input_columns(exported.inputs, raw).items()
    }
    names = [output.name for output in session.get_outputs()]
    predictions = dict(zip(exported.outputs, session.run(names, feed), strict=True))
    return _compared(model, predictions, raw, f"onnxruntime {runtime.__version__}")


def _compared(model: Model, predictions: Mapping[str, Any], raw: Matrix, engine: str) -> Parity:
    predicted = model.predict_raw(raw)
    numbers = predicted.values if predicted.probabilities is None else predicted.probabilities
    ours = numbers.reshape(len(raw), -1).astype(np.float64)
    theirs = np.asarray(predictions["predict" if predicted.probabilities is None else "predict_proba"])
    theirs = theirs.reshape(len(raw), -1).astype(np.float64)
    gaps = (np.isnan(raw) | (np.isin(raw, UNSEEN) & model.preparation.codes.categorical)).any(axis=1)
    undefined = np.isnan(theirs).all(axis=1) & ~np.isnan(ours).all(axis=1) & gaps
    ours, theirs = ours[~undefined], theirs[~undefined]
    if ours.shape != theirs.shape:
        raise ExportMismatch("Predictions have another shape.")
    with np.errstate(invalid="ignore"):
        same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
        size = np.abs(np.where(np.isfinite(ours), ours, 0.0)).max(axis=0, initial=1e-300)
        differences = np.where(same, 0.0, np.abs(ours - theirs) / size)
    largest = float(np.where(np.isnan(differences), np.inf, differences).max(initial=0.0))
    if largest > TOLERANCE:
        raise ExportMismatch(f"The largest difference to {engine} is {largest:.3g} of the largest number.")
    if predicted.probabilities is not None:
        _demand_labels(
            model, predicted.values[~undefined], np.asarray(predictions["predict"])[~undefined], ours, engine
        )
    return Parity(len(raw), engine, largest, int(undefined.sum()))


def _demand_labels(model: Model, codes: Any, labels: Any, shares: Matrix, engine: str) -> None:
    """Raises ExportMismatch unless labels are equal, but where two classes are equally likely to rounding."""
    expected = np.array(model.classes, object)[codes]
    top = np.sort(shares, axis=1)[:, -2:]
    decided = top[:, -1] - top[:, 0] > TOLERANCE if shares.shape[1] > 1 else np.ones(len(shares), np.bool_)
    other = np.array([ours != theirs for ours, theirs in zip(expected.tolist(), labels.tolist(), strict=True)])
    if (other & decided).any():
        raise ExportMismatch(f"{int((other & decided).sum())} labels differ from those of {engine}.")


def _drawn(column: InputColumn, absent: float, rng: np.random.Generator) -> Any:
    """absent: the code of texts that are no level."""
    if column.levels is not None:
        codes = rng.integers(int(UNSEEN), len(column.levels), ROWS).astype(np.float64)
        return np.where(codes == UNSEEN, absent, codes)
    low = 0.0 if column.minimum is None else column.minimum
    high = 1.0 if column.maximum is None else column.maximum
    if column.kind == "boolean":
        return rng.integers(0, 2, ROWS).astype(np.float64)
    values = low + (high - low) * rng.random(ROWS)
    return np.where(rng.random(ROWS) < 0.5, np.round(values), values)


def _column(column: InputColumn, values: Any) -> Any:
    if column.levels is None:
        return np.ascontiguousarray(values)[:, None]
    other = "".join(["?", *column.levels])[:1000]  # longer than any of them
    names = np.array([*column.levels, other, ""], np.str_)
    is_level = (values >= 0) & (values < len(column.levels))
    places = np.where(np.isnan(values), len(names) - 1, np.where(is_level, values, len(column.levels)))
    return names[places.astype(np.intp)][:, None]
