"""Any other fitted estimator of scikit-learn as a graph of ONNX, which skl2onnx makes of it.

Such a graph is a translation: it may predict some rows otherwise. So it is sent with rows and scikit-learn's own
predictions of them, and the service makes no version where its own are not the same.
"""

import csv
import importlib
import io
import math
from typing import Any

from .fitted_parts import Check, Fitted, NotImportable, classes_of, columns_of, named

LABELS = "predicted class"
"""Column of the check: where probabilities saturate, the class is not that of the largest."""
RELATIVE_TOLERANCE = 1e-9
"""Relative difference up to which a graph that computes with 64 bits predicts as scikit-learn does."""


def fitted_graph(estimator: Any, rows: Any) -> Fitted:
    """rows: (n, d) numbers, such as those it was fitted on. Raises NotImportable."""
    import numpy as np  # noqa: PLC0415  scikit-learn has it

    kind = type(estimator).__name__
    if rows is None:
        raise NotImportable(f"{kind} is imported as a graph of ONNX: give rows to check its predictions, as `check`.")
    names, classes = columns_of(estimator), classes_of(estimator)
    cells = np.ascontiguousarray(np.asarray(rows, np.float64))
    if cells.ndim != 2 or cells.shape[1] != len(names):
        raise NotImportable(f"The rows of the check do not have the {len(names)} columns of the estimator.")
    predict = estimator.predict_proba if hasattr(estimator, "predict_proba") else estimator.predict
    if classes and predict == estimator.predict:
        raise NotImportable(f"{kind} gives no probabilities: calibrate it there first.")
    expected = np.asarray(predict(named(cells, estimator)), np.float64).reshape(len(cells), -1)
    predictions = [f"predicted {place}" for place in range(expected.shape[1])]
    written = io.StringIO()
    table = csv.writer(written)
    columns, labels = predictions, np.empty((len(cells), 0)).tolist()
    if classes:
        columns, labels = (
            [*predictions, LABELS],
            [[label] for label in estimator.predict(named(cells, estimator)).tolist()],
        )
    table.writerow([*names, *columns])
    for row, label in zip(np.hstack([cells, expected]).tolist(), labels, strict=True):
        table.writerow([*map(_cell, row), *label])
    request: dict[str, Any] = {"file_format": "onnx", "inputs": [{"name": name} for name in names]}
    if classes:
        request["classes"] = classes
    check = Check(written.getvalue().encode(), predictions, LABELS if classes else None)
    return Fitted(_graph(estimator, cells, expected), request, check)


def _cell(value: float) -> str:
    return "" if math.isnan(value) else repr(value)


def _graph(estimator: Any, cells: Any, expected: Any) -> bytes:
    """With 64 bits where onnxruntime, if it is here, predicts the rows so; else with 32."""
    double = _translated(estimator, cells.shape[1], "DoubleTensorType")
    if double is not None and _predicts(double, cells, expected):
        return double
    single = _translated(estimator, cells.shape[1], "FloatTensorType")
    if single is None:
        raise NotImportable(f"skl2onnx cannot translate {type(estimator).__name__}, or a step of it.")
    return single


def _translated(estimator: Any, d: int, kind: str) -> bytes | None:
    """None: skl2onnx knows no translation."""
    try:
        skl2onnx: Any = importlib.import_module("skl2onnx")
    except ImportError as error:
        name = type(estimator).__name__
        raise NotImportable(f"{name} is imported as a graph of ONNX, which skl2onnx makes: install it.") from error
    types = getattr(skl2onnx.common.data_types, kind)
    try:
        plain = {id(estimator): {"zipmap": False}} if classes_of(estimator) else None
        translated = skl2onnx.to_onnx(estimator, initial_types=[("inputs", types([None, d]))], options=plain)
    except Exception:  # noqa: BLE001  of many kinds
        return None
    content: bytes = translated.SerializeToString()
    return content


def _predicts(graph: bytes, cells: Any, expected: Any) -> bool:
    import numpy as np  # noqa: PLC0415

    try:
        runtime: Any = importlib.import_module("onnxruntime")
        session = runtime.InferenceSession(graph, providers=["CPUExecutionProvider"])
        values = np.asarray(session.run(None, {"inputs": cells})[-1], np.float64)
    except Exception:  # noqa: BLE001  it is not here, or lacks an operator in this precision
        return False
    scale = float(np.abs(expected).max()) or 1.0
    return values.size == expected.size and bool(
        np.abs(values.ravel() - expected.ravel()).max() <= RELATIVE_TOLERANCE * scale
    )
