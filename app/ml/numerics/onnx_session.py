"""Graphs of ONNX on rows of numbers, computed by onnxruntime with one thread."""

import importlib
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.base.errors import CorruptModel, InvalidData
from app.ml.contract.algorithm import Matrix

KINDS = {"tensor(float)": np.float32, "tensor(double)": np.float64}
"""Types of numbers that a graph may take and give."""
SILENT = 4
_sessions: dict[int, Any] = {}
"""By the address of the array with the graph, for as long as it is there."""


def session_of(graph: NDArray[np.uint8]) -> Any:
    """The `InferenceSession` of these bytes. Raises CorruptModel where onnxruntime is not installed."""
    key = id(graph)
    if key not in _sessions:
        made = _session(graph.tobytes())
        if _sessions.setdefault(key, made) is made:
            weakref.finalize(graph, _sessions.pop, key, None)
    return _sessions[key]


def computed(graph: NDArray[np.uint8], output: int, x: Matrix) -> Matrix:
    """(n, k) the numbers of this output for rows (n, d), which the graph takes as one array or by columns.

    Raises InvalidData where the graph fails on these rows.
    """
    if not len(x):
        return computed(graph, output, np.zeros((1, x.shape[1])))[:0]
    values = values_of_output(graph, session_of(graph).get_outputs()[output].name, x)
    if values.size % len(x):
        raise InvalidData("The graph does not give numbers for each row.")
    return values.astype(np.float64).reshape(len(x), -1)


def values_of_output(graph: NDArray[np.uint8], name: str, x: Matrix) -> NDArray[Any]:
    """The output of this name, in its own type. Raises InvalidData where the graph fails on these rows."""
    session = session_of(graph)
    inputs = session.get_inputs()
    with np.errstate(over="ignore"):  # infinite with 32 bits, as for the library
        if len(inputs) == 1:
            feed = {inputs[0].name: x.astype(KINDS[inputs[0].type])}
        else:
            feed = {graph_input.name: x[:, [j]].astype(KINDS[graph_input.type]) for j, graph_input in enumerate(inputs)}
    try:
        (values,) = session.run([name], feed)
    except Exception as error:
        raise InvalidData("The graph cannot be computed for these rows.") from error
    return np.asarray(values)


def _session(graph: bytes) -> Any:
    try:
        runtime: Any = importlib.import_module("onnxruntime")
    except ImportError:
        raise CorruptModel("This process lacks onnxruntime, which computes the model: install valiant[onnx].") from None
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = SILENT
    options.enable_cpu_mem_arena = False  # it would keep what the largest request took
    return runtime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
