"""Graphs in the format ONNX: what they read and give is found, and what cannot be predicted exactly is refused.

A graph takes rows of numbers, as one array or as one of each column, any number at a time, and gives numbers for each.
Its predictions must be those that it makes of each row alone, and the same each time. The bytes that are stored are
those of the file, but that a `ZipMap` at the end, which makes dictionaries of probabilities, is left out.
"""

import importlib
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.base.errors import ImportUnsupported
from app.base.faults import Fault
from app.ingest.onnx_trees import demand_trees
from app.ml.algorithms.imported_onnx import ImportedONNX, State
from app.ml.contract.algorithm import Matrix, TargetKind, Task
from app.ml.contract.labels import Class
from app.ml.contract.model_file_options import ALL, ModelFileOptions
from app.ml.models.parsed_model import ParsedColumn, ParsedModel, Probes
from app.ml.numerics.onnx_session import KINDS, computed, session_of, values_of_output
from app.ml.numerics.trees.foreign_trees import damaged, unsupported

MOST_BYTES = 256 << 20
DOMAINS = {"", "ai.onnx", "ai.onnx.ml"}
RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
LABELS = {"tensor(int64)", "tensor(string)"}
TREES = {"TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor"}
CLASSES = ("classlabels_ints", "classlabels_int64s", "classlabels_strings")
"""Attributes of operators of ai.onnx.ml that name the classes."""
PROBES, CELLS = 1000, 2**20
"""Probe rows, fewer of very many columns so that they have so many cells at most."""
MISSING_OPERATOR = re.compile(r"implementation for ([A-Za-z0-9_.]{1,80})\(")
ALONE = 20
"""Probe rows that are predicted alone, too."""
RELATIVE_TOLERANCE = 1e-5
"""Relative difference that sums in another order may make with 32 bits."""
DRAWN = 20261128
"""Seed of the probe rows."""


def parse(path: Path, _: ModelFileOptions = ALL) -> ParsedModel:
    """Raises ImportUnsupported and InvalidData; ImportError where onnx or onnxruntime are not installed."""
    onnx, runtime = (importlib.import_module(name) for name in ("onnx", "onnxruntime"))
    if path.stat().st_size > MOST_BYTES:
        raise unsupported("too_large", "", f"The file has more than {MOST_BYTES >> 20} MiB.")
    model = _read(onnx, path.read_bytes())
    if faults := [*_faults(onnx, model)]:
        raise ImportUnsupported(faults=faults)
    for inner in _graphs(model.graph):
        for node in inner.node:
            if node.op_type in TREES:
                demand_trees(node.op_type, _attributes(onnx, node))
    classes = _classes(onnx, model)
    probabilities = _without_zip_map(model)
    graph = np.frombuffer(model.SerializeToString(), np.uint8)
    signature = _signature(_session(graph), probabilities)
    rows = _rows(len(signature.columns))
    values = computed(graph, signature.output, rows)
    columns = tuple(_column(graph, signature, name, j, rows) for j, name in enumerate(signature.columns))
    _demand_rows_apart(graph, signature.output, rows, values)
    task = _task(signature, values)
    if task.of_classes:
        classes = _demand_labels(graph, signature, rows, values, classes)
    params = ImportedONNX(library="onnx", objective=model.producer_name[:200], arithmetic=signature.arithmetic)
    state = State(graph, signature.output, max(2, values.shape[1]) if task.of_classes else 0)
    parser, named = f"onnxruntime {runtime.__version__}", classes if task.of_classes else None
    return ParsedModel("imported_onnx", params, state, task, columns, Probes(rows, values, values), parser, (), named)


class _Signature(NamedTuple):
    columns: tuple[str, ...]
    output: int
    labels: str | None
    """Name of the output with the predicted classes."""
    arithmetic: Literal["float32", "float64"]


def _read(onnx: Any, content: bytes) -> Any:
    try:
        model = onnx.load_model_from_string(content)
    except Exception as error:
        raise damaged("It is no model of ONNX.") from error
    if not model.graph.node:
        raise damaged("Its graph is empty.")
    return model


def _faults(onnx: Any, model: Any) -> Iterator[Fault]:
    """Faults of the graph, each once."""
    faults: dict[str, Fault] = {}
    if model.functions:
        faults["functions"] = Fault("/functions", "The file defines operators of its own.", "functions")
    for graph in _graphs(model.graph):
        for node in graph.node:
            name = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
            if node.domain not in DOMAINS:
                detail = f"The operator {name[:80]} is none of ONNX."
                faults.setdefault(node.domain, Fault("/graph/node", detail, "custom_operator"))
            elif node.op_type in RANDOM:
                detail = f"The operator {name} draws at random: predictions would differ each time."
                faults.setdefault(name, Fault("/graph/node", detail, "random"))
            elif node.op_type == "Loop":
                faults.setdefault(name, Fault("/graph/node", "The rounds of a Loop have no limit.", "loop"))
        if any(tensor.data_location == onnx.TensorProto.EXTERNAL or tensor.external_data for tensor in _tensors(graph)):
            faults["external"] = Fault("/graph/initializer", "Weights lie in another file.", "external_data")
    yield from faults.values()


def _attributes(onnx: Any, node: Any) -> dict[str, Any]:
    """Values by name, tensors as arrays. Raises InvalidData for one that is there twice, or is no tensor."""
    try:
        values = [(each.name, onnx.helper.get_attribute_value(each)) for each in node.attribute]
        values_by_name = {
            name: onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value
            for name, value in values
        }
    except Exception as error:
        raise damaged("An attribute of an operator has no value.") from error
    if len(values_by_name) < len(values):
        raise damaged("An attribute of an operator is there twice.")
    return values_by_name


def _graphs(graph: Any) -> Iterator[Any]:
    """The graph, and those within its operators."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
                yield from _graphs(inner)


def _tensors(graph: Any) -> Iterator[Any]:
    """The constants of a graph, wherever they stand."""
    attributes = [attribute for node in graph.node for attribute in node.attribute]
    yield from graph.initializer
    for sparse in (
        *graph.sparse_initializer,
        *(attribute.sparse_tensor for attribute in attributes),
        *chain.from_iterable(attribute.sparse_tensors for attribute in attributes),
    ):
        yield from (sparse.values, sparse.indices)
    for attribute in attributes:
        yield from (*attribute.tensors, attribute.t)


def _without_zip_map(model: Any) -> str | None:
    """Give the probabilities before a final `ZipMap` instead of its dictionaries; their name if there was one."""
    graph = model.graph
    for node in graph.node:
        places = [place for place, output in enumerate(graph.output) if list(node.output) == [output.name]]
        if node.op_type == "ZipMap" and places:
            name = str(node.input[0])
            graph.output[places[0]].Clear()  # onnxruntime infers its type
            graph.output[places[0]].name = name
            graph.node.remove(node)
            return name
    return None


def _classes(onnx: Any, model: Any) -> tuple[Class, ...] | None:
    """Labels of the classes in their order, as the last operator has them that names them or picks one of a list."""
    labels: list[Class] = []
    lists = {initializers.name: initializers for initializers in model.graph.initializer}
    for node in model.graph.node:
        picks = lists.get(node.input[0]) if node.op_type == "ArrayFeatureExtractor" else None
        if picks is not None:
            labels = onnx.numpy_helper.to_array(picks).ravel().tolist()
        for attribute in node.attribute:
            if attribute.name in CLASSES and (attribute.ints or attribute.strings):
                labels = [*attribute.ints, *attribute.strings]
    return tuple(label.decode(errors="replace") if isinstance(label, bytes) else label for label in labels) or None


def _session(graph: NDArray[np.uint8]) -> Any:
    try:
        return session_of(graph)
    except Exception as error:
        if type(error).__name__ == "NotImplemented":
            operator = MISSING_OPERATOR.search(str(error))
            named = f"the operator {operator.group(1)}" if operator else "an operator of the graph"
            detail = f"onnxruntime does not compute {named} in this precision."
            raise unsupported("not_implemented", "/graph/node", detail) from error
        raise damaged(
            "onnxruntime refuses the graph: its operators, or the shapes between them, do not fit."
        ) from error


def _signature(session: Any, probabilities: str | None) -> _Signature:
    inputs, outputs = session.get_inputs(), session.get_outputs()
    for input_ in inputs:
        if input_.type not in KINDS:
            raise unsupported(
                "input_type", f"/graph/input/{input_.name}", f"It takes {input_.type}, not numbers: floats."
            )
        if len(input_.shape) != 2 or isinstance(input_.shape[0], int):
            detail = f"It takes an array of shape {input_.shape}, not any number of rows at a time."
            raise unsupported("input_shape", f"/graph/input/{input_.name}", detail)
    if len(inputs) == 1:
        if not isinstance(inputs[0].shape[1], int) or inputs[0].shape[1] < 1:
            raise unsupported("input_shape", f"/graph/input/{inputs[0].name}", "Its number of columns is not stated.")
        columns = tuple(f"f{j}" for j in range(inputs[0].shape[1]))
    else:
        if not inputs or any(input_.shape[1] != 1 for input_ in inputs):
            raise unsupported("input_shape", "/graph/input", "It takes several arrays of more than one column.")
        columns = tuple(str(input_.name) for input_ in inputs)
    numbers = [place for place, output in enumerate(outputs) if output.type in KINDS]
    labels = [str(output.name) for output in outputs if output.type in LABELS]
    named = [place for place in numbers if outputs[place].name == probabilities or "prob" in outputs[place].name]
    chosen = numbers if len(numbers) == 1 else named
    if len(chosen) != 1 or len(labels) > 1:
        raise unsupported("outputs", "/graph/output", "Not one output has the predicted numbers or probabilities.")
    exact = all(tensor.type == "tensor(double)" for tensor in (*inputs, outputs[chosen[0]]))
    return _Signature(columns, chosen[0], labels[0] if labels else None, "float64" if exact else "float32")


def _rows(d: int) -> Matrix:
    """(n, d) rows in all directions, short and long, of numbers that 32 bits hold."""
    rng, n = np.random.default_rng(DRAWN), max(ALONE, min(PROBES, CELLS // d))
    rows = rng.normal(size=(n, d)) * np.exp(rng.normal(0, 2, size=(n, 1)))
    rows[: n // 4] = np.abs(rows[: n // 4])
    rows[n // 4 : n // 2] = np.round(rows[n // 4 : n // 2])
    return rows.astype(np.float32).astype(np.float64)


def _column(graph: NDArray[np.uint8], signature: _Signature, name: str, place: int, rows: Matrix) -> ParsedColumn:
    """A number may be missing where the graph then gives finite ones."""
    empty = rows[:ALONE].copy()
    empty[:, place] = np.nan
    return ParsedColumn(name, nullable=bool(np.isfinite(computed(graph, signature.output, empty)).all()))


def _demand_rows_apart(graph: NDArray[np.uint8], output: int, rows: Matrix, values: Matrix) -> None:
    """Raises ImportUnsupported unless each row is predicted alone as among the others, and the same each time."""
    alone = np.concatenate([computed(graph, output, rows[[i]]) for i in range(ALONE)])
    together, finite = values[:ALONE], np.isfinite(values)
    if not finite.all(axis=1).any():
        raise unsupported("not_finite", "/graph", "No prediction of a probe row is finite.")
    with np.errstate(invalid="ignore"):
        differences = np.abs(alone - together) if alone.shape == together.shape else np.full(1, np.inf)
    if (differences > RELATIVE_TOLERANCE * np.abs(values[finite]).max()).any():
        raise unsupported("rows_together", "/graph", "A prediction depends on the other rows of a request.")
    if not np.array_equal(computed(graph, output, rows), values, equal_nan=True):
        raise unsupported("random", "/graph", "Predictions of the same rows differ.")


def _task(signature: _Signature, values: Matrix) -> Task:
    shares = bool(values.shape[1] > 1 and (values >= 0).all() and np.allclose(values.sum(axis=1), 1, atol=1e-4))
    if signature.labels is not None and not shares:
        raise unsupported("no_probabilities", "/graph/output", "It gives classes without their probabilities.")
    if values.shape[1] > 1 and not shares:
        raise unsupported("several_outputs", "/graph/output", "The model predicts several numbers at once.")
    return Task.of_target(TargetKind.CLASSES if shares else TargetKind.NUMBERS)


def _demand_labels(
    graph: NDArray[np.uint8],
    signature: _Signature,
    rows: Matrix,
    values: Matrix,
    classes: Sequence[Class] | None,
) -> tuple[Class, ...] | None:
    """Labels of the classes; None: the graph gives probabilities alone.

    They are those that it predicts where one probability is the largest, and of a class that no probe row has, that of
    its operators. Raises ImportUnsupported where a prediction is another class, or where the label of one is not known.
    """
    k = values.shape[1]
    label_of_code: list[Class | None] = list(classes) if classes is not None and len(set(classes)) == k else [None] * k
    if signature.labels is None:
        return None if None in label_of_code else tuple(classes or ())
    labels = values_of_output(graph, signature.labels, rows).ravel().tolist()
    if len(labels) != len(rows):
        raise unsupported("outputs", "/graph/output", "It does not give one class for each row.")
    ranked = np.sort(values, axis=1)
    clear = ranked[:, -1] - ranked[:, -2] > RELATIVE_TOLERANCE
    codes = values.argmax(axis=1)
    seen = {(int(codes[i]), labels[i]) for i in np.flatnonzero(clear)}
    if len({code for code, _ in seen}) < len(seen) or len({label for _, label in seen}) < len(seen):
        detail = "The classes that it predicts are not those of the largest probabilities."
        raise unsupported("other_classes", "/graph/output", detail)
    for code, label in seen:
        label_of_code[code] = label
    named = tuple(label for label in label_of_code if label is not None)
    if len(set(named)) < k:
        raise unsupported("classes", "/graph/output", "It names no label for one of its classes.")
    return named
