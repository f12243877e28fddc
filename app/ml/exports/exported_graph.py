"""A model as one graph of tensor operations: from a column for each input to its predictions."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.columns import ColumnKind, InputColumn
from app.ml.contract.export_errors import ExportUnsupported
from app.ml.contract.labels import Class
from app.ml.contract.task import PredictionKind
from app.ml.contract.tensor_graph import Tensor, TensorGraph
from app.ml.models.model import Model
from app.ml.preparation.matrix_tensors import matrix_tensor

MAX_BYTES = 1_000_000_000
"""Size of all arrays of a graph: protobuf, which ONNX is written in, ends at twice as much."""
UNDEFINED_INTEGER = -(2**63)
"""Label of a row that the graph cannot predict, where labels are whole numbers; texts are empty then."""


class ExportedGraph(NamedTuple):
    graph: TensorGraph
    inputs: tuple[InputColumn, ...]
    outputs: Mapping[str, Tensor]
    """By the names that the outputs have in the Open Inference Protocol: (n,) predictions and (n, k) probabilities."""


def export_graph(model: Model) -> ExportedGraph:
    """Raises ExportUnsupported, which names the part that has no operators."""
    to_tensor = model.algorithm.graph
    if to_tensor is None:
        raise ExportUnsupported(f"The predictions of {model.name} have no graph of tensor operations.")
    if not model.inputs:
        raise ExportUnsupported("The model has no columns as inputs.")
    if any(column.strict_levels for column in model.inputs):
        raise ExportUnsupported("The model predicts items that it was trained with, by relations between them.")
    graph = TensorGraph()
    columns = [_input_tensor(graph, column, code) for column, code in zip(model.inputs, _absent(model), strict=True)]
    raw = columns[0].beside(*columns[1:])
    result = to_tensor(model.params, model.state, matrix_tensor(model.preparation, raw))
    size = sum(value.nbytes for value in graph.values if isinstance(value, np.ndarray))
    if size > MAX_BYTES:
        raise ExportUnsupported(f"The model's arrays have {size:,} bytes; at most {MAX_BYTES:,} can be exported.")
    return ExportedGraph(graph, model.inputs, _outputs(model, result))


def _absent(model: Model) -> list[float]:
    """The code of a text that is no level, of each input."""
    return model.preparation.codes.absent.tolist()  # type: ignore[no-any-return]  # one dimension


def _input_tensor(graph: TensorGraph, column: InputColumn, absent: float) -> Tensor:
    """(n, 1) of the raw matrix: numbers as they come; codes of texts, of which "" is missing unless it is a level."""
    tensor = graph.input_column(column.name)
    if column.kind not in {ColumnKind.NUMERIC, ColumnKind.BOOLEAN, ColumnKind.DATETIME} and column.levels is None:
        raise ExportUnsupported(f"The input {column.name!r} is {column.kind}: no operators in ONNX read it.")
    if column.levels is None:
        return tensor
    levels = np.array([*column.levels, ""] if "" not in column.levels else column.levels, np.str_)
    codes = np.arange(len(levels), dtype=np.float64)
    codes[len(column.levels) :] = math.nan
    place = graph.compute("LabelEncoder", [tensor, levels], 1)
    return place.among(np.append(codes, absent))


def _outputs(model: Model, result: Tensor) -> dict[str, Tensor]:
    if not model.task.of_classes:
        has_axis = model.task.record.prediction is PredictionKind.COORDINATES
        return {"predict": result if has_axis or result.width > 1 else _without_axis(result)}
    labels, undefined = _class_labels(model.classes or ())
    code = result.first_largest()
    if result.width == 2:
        code = (result[[1]] > result[[0]]).to_numbers().to_integers()
    is_defined = ~result.reduce("ReduceSum").apply("IsNaN")
    named = code.among(labels).where(is_defined, result.graph.constant(undefined))
    return {"predict": _without_axis(named), "predict_proba": result}


def _without_axis(result: Tensor) -> Tensor:
    return result.graph.compute("Squeeze", [result, np.array([1])], 1)


def _class_labels(classes: tuple[Class, ...]) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
    """(k,) labels, truths as 1 and 0; and the label of rows without a prediction."""
    if all(isinstance(label, str) for label in classes):
        return np.array(classes, np.str_), np.array("")
    if all(isinstance(label, int) for label in classes):
        return np.array(classes, np.int64), np.array(UNDEFINED_INTEGER)
    return np.array(classes, np.float64), np.array(math.nan)
