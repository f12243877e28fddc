"""A model as one Python file that needs numpy alone: arrays as text, predictions of tables, golden rows to check."""

import base64
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from app.ml.contract.algorithm import JSON
from app.ml.contract.columns import ColumnKind
from app.ml.contract.export_errors import ExportUnsupported
from app.ml.contract.tensor_graph import Operation
from app.ml.exports import graph_script
from app.ml.exports.exported_graph import ExportedGraph
from app.ml.models.model import Model

MAX_BYTES = 50_000_000
"""Size of the compressed arrays: a larger file is no script that a person opens."""
LINE = 110
KINDS = {ColumnKind.NUMERIC: "number", ColumnKind.BOOLEAN: "boolean", ColumnKind.DATETIME: "datetime"}


def script_of(model: Model, exported: ExportedGraph, golden: Mapping[str, Any], origin: Mapping[str, JSON]) -> str:
    """The script. golden: columns of rows by name, and their outputs. Raises ExportUnsupported where it is too large.

    origin: where the model comes from, which the script states.
    """
    steps, arrays = graph_steps(exported)
    document = {
        "origin": dict(origin),
        "inputs": [[column.name, KINDS.get(ColumnKind(column.kind), "text")] for column in exported.inputs],
        "outputs": {name: tensor.place for name, tensor in exported.outputs.items()},
        "classes": None if model.classes is None else list(model.classes),
        "golden": golden,
        "steps": steps,
    }
    stored = io.BytesIO()
    np.savez_compressed(stored, **{f"a{place}": array for place, array in enumerate(arrays)})
    if stored.getbuffer().nbytes > MAX_BYTES:
        raise ExportUnsupported(f"The model's arrays are larger than {MAX_BYTES:,} bytes: export it as ONNX.")
    text = base64.b64encode(stored.getvalue()).decode()
    lines = "\n".join(text[start : start + LINE] for start in range(0, len(text), LINE))
    source = Path(graph_script.__file__).read_text("utf-8").split("\n", 1)[1]
    return _START.format(**origin) + source + _END.format(document=repr(json.dumps(document)), arrays=lines)


def graph_steps(exported: ExportedGraph) -> tuple[list[Any], list[Any]]:
    """Steps and arrays as `graph_script.run_graph` takes them."""
    steps: list[Any] = []
    arrays: list[Any] = []
    for value in exported.graph.values:
        if isinstance(value, Operation):
            steps.append([value.operator, list(value.inputs), dict(value.attributes)])
        elif isinstance(value, str):
            steps.append(value)
        else:
            steps.append(len(arrays))
            arrays.append(value)
    return steps, arrays


_START = '''"""Predictions of the model {model}, version {version}, with numpy alone.

python FILE rows.csv > predictions.csv    predicts the rows of a table
python FILE --check                       compares with the service's predictions of its golden rows
from FILE import predict                  predict({{"column": [cells, …], …}})

Stored as {digest}. Intervals, flags and rejected rows are the service's alone.
"""
'''
_END = '''

DOCUMENT = document_of({document})
ARRAYS = read_arrays("""
{arrays}
""")


def predict(table: Mapping[str, Any]) -> dict[str, Any]:
    """Predictions by the names of the outputs, for a table with a sequence of cells for each input by its name."""
    return predict_table(DOCUMENT, ARRAYS, table)


if __name__ == "__main__":
    run_script(sys.argv[1:], DOCUMENT, ARRAYS)
'''
