"""A graph of tensor operations as bytes of ONNX: opset 21, ai.onnx.ml 5, all numbers of 64 bits."""

import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from app.ml.contract.columns import InputColumn
from app.ml.contract.export_errors import ExportUnavailable
from app.ml.contract.tensor_graph import Operation, Tensor
from app.ml.exports.exported_graph import ExportedGraph
from app.ml.exports.onnx_tree_nodes import tree_nodes

OPSET, ML_OPSET, IR_VERSION = 21, 5, 10
ML = "ai.onnx.ml"
DTYPES = {"float64": "DOUBLE", "float32": "FLOAT", "int64": "INT64"}


def onnx_bytes(exported: ExportedGraph, metadata: Mapping[str, str]) -> bytes:
    """The model as ONNX. metadata: texts that the file states of itself.

    Raises ExportUnavailable without the package onnx.
    """
    onnx = onnx_package()
    helper, proto = onnx.helper, onnx.TensorProto
    writer = _Writer(onnx, exported)
    inputs = [
        helper.make_tensor_value_info(column.name, _element(proto, column), ["N", 1]) for column in exported.inputs
    ]
    outputs = [writer.output(name, tensor) for name, tensor in exported.outputs.items()]
    graph = helper.make_graph(writer.nodes, "model", inputs, outputs, writer.initializers)
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(ML, ML_OPSET)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="valiant")
    helper.set_model_props(model, dict(metadata))
    return model.SerializeToString()  # type: ignore[no-any-return]  # onnx is imported by its name


def onnx_package() -> Any:
    """The package onnx. Raises ExportUnavailable where it is not installed."""
    try:
        package = importlib.import_module("onnx")
        importlib.import_module("onnx.helper")
    except ImportError:
        raise ExportUnavailable from None
    return package


def _element(proto: Any, column: InputColumn) -> int:
    return int(proto.DOUBLE if column.levels is None else proto.STRING)


class _Writer:
    """Nodes and constants of a graph."""

    def __init__(self, onnx: Any, exported: ExportedGraph) -> None:
        self._onnx, self._exported = onnx, exported
        taken = {column.name for column in exported.inputs}
        self._prefix = "v"
        while any(name.startswith(self._prefix) for name in taken):
            self._prefix += "_"
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self._stored: set[int] = set()
        for place, value in enumerate(exported.graph.values):
            if isinstance(value, Operation):
                self._write(place, value)

    def output(self, name: str, tensor: Tensor) -> Any:
        """Declares an output, (n,) or (n, k)."""
        onnx, taken = self._onnx, {column.name for column in self._exported.inputs}
        while name in taken:
            name += "_"
        self._node("Identity", [self._name(tensor.place)], [name])
        value = self._exported.graph.values[tensor.place]
        is_flat = isinstance(value, Operation) and value.operator == "Squeeze"
        kind = onnx.TensorProto.DOUBLE if name.startswith("predict_proba") else self._element_of(tensor.place)
        return onnx.helper.make_tensor_value_info(name, kind, ["N"] if is_flat else ["N", tensor.width])

    def _element_of(self, place: int) -> int:
        """Type of the elements of a value, as far as outputs need it."""
        value, proto = self._exported.graph.values[place], self._onnx.TensorProto
        if isinstance(value, np.ndarray):
            return int(
                self._onnx.helper.np_dtype_to_tensor_dtype(value.dtype) if value.dtype.kind != "U" else proto.STRING
            )
        if isinstance(value, str):
            return int(proto.DOUBLE)
        if value.operator in {"ArgMax", "ArgMin"}:
            return int(proto.INT64)
        if value.operator == "Cast":
            return int(getattr(proto, DTYPES[value.attributes["to"]]))
        if value.operator == "Where":
            return self._element_of(value.inputs[1])
        return self._element_of(value.inputs[0])

    def _name(self, place: int) -> str:
        """The name of a value; constants are stored when they are first named."""
        value = self._exported.graph.values[place]
        if isinstance(value, str):
            return value
        name = f"{self._prefix}{place}"
        if isinstance(value, np.ndarray) and place not in self._stored:
            self._stored.add(place)
            self.store(name, value)
        return name

    def store(self, name: str, array: np.typing.NDArray[Any]) -> str:
        """Stores an array as a constant; its name."""
        array = array.astype(object) if array.dtype.kind == "U" else np.asarray(array, order="C")
        self.initializers.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def _node(self, operator: str, inputs: list[str], outputs: list[str], **attributes: Any) -> None:
        domain = ML if operator in {"LabelEncoder", "TreeEnsemble"} else ""
        self.nodes.append(self._onnx.helper.make_node(operator, inputs, outputs, domain=domain, **attributes))

    def _write(self, place: int, value: Operation) -> None:
        name, attributes = f"{self._prefix}{place}", dict(value.attributes)
        match value.operator:
            case "TreeEnsemble":
                self._write_trees(name, value)
            case "LabelEncoder":
                self._write_labels(name, value)
            case "Cast":
                to = getattr(self._onnx.TensorProto, DTYPES[attributes["to"]])
                self._node("Cast", [self._name(value.inputs[0])], [name], to=to)
            case "TopK":
                output = attributes.pop("output")
                unused = f"{name}_rest"
                names = [unused, name] if output else [name, unused]
                self._node("TopK", [self._name(place) for place in value.inputs], names, **attributes)
            case _:
                self._node(value.operator, [self._name(place) for place in value.inputs], [name], **attributes)

    def _write_labels(self, name: str, value: Operation) -> None:
        levels = self._exported.graph.values[value.inputs[1]]
        assert isinstance(levels, np.ndarray)  # noqa: S101 - as `TensorGraph.compute` was given
        keys, places = levels.tolist(), list(range(len(levels)))
        names = {"keys_strings": keys, "values_int64s": places, "default_int64": len(keys)}
        self._node("LabelEncoder", [self._name(value.inputs[0])], [name], **names)

    def _write_trees(self, name: str, value: Operation) -> None:
        arrays = [self._exported.graph.values[place] for place in value.inputs[1:]]
        written = tree_nodes(self._onnx, arrays, by_tree=bool(value.attributes["by_tree"]))
        rows, parts = self._name(value.inputs[0]), []
        if written.values is None and not written.spreads:
            self._node("TreeEnsemble", [rows], [name], **written.attributes)
            return
        if written.values is None:
            axis, zero = self.store(f"{name}_axis", np.array([1])), self.store(f"{name}_zero", np.array(0.0))
            self._node("TreeEnsemble", [rows], [f"{name}_sums"], **written.attributes)
            self._node("ReduceSum", [f"{name}_sums", axis], [f"{name}_sum"])
            self._node("Mul", [f"{name}_sum", zero], [f"{name}_gap"])
            self._node("Add", [f"{name}_sums", f"{name}_gap"], [name])
            return
        self._node("TreeEnsemble", [rows], [f"{name}_rows"], **written.attributes)
        self._node("Cast", [f"{name}_rows"], [f"{name}_places"], to=self._onnx.TensorProto.INT64)
        axis, last = self.store(f"{name}_axis", np.array(1)), self.store(f"{name}_last", np.array([-1]))
        for column, values in enumerate(written.values.T):
            stored = self.store(f"{name}_values{column}", np.ascontiguousarray(values))
            part = f"{name}_{column}"
            self._node("Gather", [stored, f"{name}_places"], [f"{part}_each"], axis=0)
            self._node("CumSum", [f"{part}_each", axis], [f"{part}_sums"])
            self._node("Gather", [f"{part}_sums", last], [part], axis=1)
            parts.append(part)
        self._node("Concat", parts, [name], axis=1)
