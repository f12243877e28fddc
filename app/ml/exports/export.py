"""A model version as a file that other programs predict with, and the proof that it predicts the same."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import orjson

from app.ml.contract.algorithm import Matrix
from app.ml.exports.exported_graph import UNDEFINED_INTEGER, export_graph
from app.ml.exports.numpy_script import script_of
from app.ml.exports.onnx_writer import onnx_bytes, onnx_package
from app.ml.exports.parity import Parity, compare_numpy, compare_onnx, drawn_rows, input_columns
from app.ml.models.golden import golden_table
from app.ml.models.model import Model

ExportFormat: TypeAlias = Literal["onnx", "script"]


class ExportedFile(NamedTuple):
    content: bytes
    parity: Parity


def export_model(
    model: Model, export_format: ExportFormat, golden: Mapping[str, Any], origin: Mapping[str, Any]
) -> ExportedFile:
    """The file. golden: as `record_golden` made it. origin: model, version, digest and release of the version.

    Raises ExportUnsupported where the model has no such file, ExportMismatch where its predictions differ, and
    ExportUnavailable where a package is missing.
    """
    if export_format == "onnx":
        onnx_package()
    exported, table = export_graph(model), golden_table(model, golden)
    rows = table if isinstance(table, np.ndarray) else model.preparation.raw(table)
    raw = np.vstack([rows, drawn_rows(model)])
    if export_format == "script":
        parity = compare_numpy(model, exported, raw)
        script = script_of(model, exported, golden_rows(model, rows), {**origin, "parity": parity._asdict()})
        return ExportedFile(script.encode(), parity)
    parity = compare_onnx(model, exported, onnx_bytes(exported, {}), raw)
    return ExportedFile(onnx_bytes(exported, onnx_metadata(model, origin, parity)), parity)


def golden_rows(model: Model, raw: Matrix) -> dict[str, Any]:
    """Columns of these rows as the script takes them, and the predictions of the version."""
    predicted = model.predict_raw(raw)
    outputs: dict[str, Any] = {"predict": predicted.values.tolist()}
    if model.classes is not None and predicted.probabilities is not None:
        labels = np.array(model.classes, object)[predicted.values].tolist()
        outputs = {"predict": labels, "predict_proba": predicted.probabilities.tolist()}
    columns = {
        name: [None if cell != cell or cell == "" else cell for cell in column[:, 0].tolist()]  # noqa: PLR0124 - NaN
        for name, column in input_columns(model.inputs, raw).items()
    }
    return {"columns": columns, "outputs": outputs}


def onnx_metadata(model: Model, origin: Mapping[str, Any], parity: Parity) -> dict[str, str]:
    """Texts that the file states of itself, each JSON where it is no plain text."""
    undefined = "NaN" if model.task.of_numbers else f'NaN; labels are "" or {UNDEFINED_INTEGER}'
    return {
        **{name: str(value) for name, value in origin.items()},
        "task": str(model.task),
        "algorithm": model.name,
        "target": model.target or "",
        "classes": orjson.dumps(model.classes or []).decode(),
        "parity": orjson.dumps(parity._asdict()).decode(),
        "missing_values": 'NaN for numbers, truths (1 and 0) and dates (seconds since 1970, UTC); "" for texts.',
        "undefined_rows": f"{undefined}: a missing or unseen value that a tree sends both ways.",
        "not_exported": "intervals, flags, rejection of rows",
    }
