"""Open Inference requests: tensors → tensors, by the same model code that `app.services.predictions` calls."""

import math
from collections.abc import Sequence
from itertools import repeat
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from app.errors import BodyTooLarge, Fault, InvalidData
from app.formats.tensors import LENGTH, InvalidTensor, Tensor, read_tensors, refused
from app.ml.contract.algorithm import Labels, Matrix
from app.ml.contract.columns import ColumnKind, InputColumn
from app.ml.models.model import Model, Predicted
from app.ml.tables.cells import EXACT, Flaw, flaw, read_cells
from app.ml.tables.rows import MAX_FAULTS
from app.schemas.open_inference import (
    InferInput,
    InferRequest,
    OutputChoice,
    Parameters,
    TensorMetadata,
    TensorParameters,
)
from app.services.predictions import Served

T = TypeVar("T")
MATRIX = "input-0"
PLATFORM = "valiant"
UNKNOWN = "The model has no column of this name."
SHOWN = 20
"""Columns named in an error."""
ONE_OUTPUT = ("np", "pd")
"""Content types of requests by MLServer's codecs: they read one array, and a table of one value per row and output."""
NEVER_OFFERED = ("classification", "shared_memory_region")
"""Parameters of other servers' extensions: they change the response, so they cannot be ignored."""
DATATYPES: dict[type, str] = {bool: "BOOL", int: "INT64", float: "FP64", str: "BYTES"}
KIND, NULLABLE = map(attrgetter, ("kind", "nullable"))
TENSOR_OF_KIND = {ColumnKind.NUMERIC: "FP64", ColumnKind.BOOLEAN: "BOOL"}


class Output(NamedTuple):
    """A tensor of a response."""

    name: str
    datatype: str
    values: NDArray[Any]
    labels: Sequence[Any] = ()
    """Of BYTES: the labels that the values index."""
    classes: Sequence[Any] = ()
    """Of the columns, where these are probabilities."""


class Inferred(NamedTuple):
    body: bytes
    json_bytes: int | None
    """Where the JSON ends and binary tensors begin; None without any."""
    rows: int
    """That were predicted."""


def inputs_of(model: Model) -> list[TensorMetadata]:
    """One matrix where all columns are numbers, else a tensor per column."""
    names = [column.name for column in model.inputs]
    if _all_numbers(model.inputs) and MATRIX not in names:
        shape = [-1, len(names)]
        columns = TensorParameters(columns=names)
        return [TensorMetadata(name=MATRIX, datatype="FP64", shape=shape, parameters=columns)]
    kinds = [TENSOR_OF_KIND.get(ColumnKind(column.kind), "BYTES") for column in model.inputs]
    return [TensorMetadata(name=n, datatype=kind, shape=[-1]) for n, kind in zip(names, kinds, strict=True)]


def outputs_of(model: Model) -> list[TensorMetadata]:
    """As `infer` returns them: read off the prediction of a row of missing values."""
    given = _outputs(model, model.predict_raw(np.full((1, len(model.inputs)), np.nan)))
    return [_described(output) for output in given]


def _described(output: Output) -> TensorMetadata:
    return TensorMetadata(
        name=output.name,
        datatype=output.datatype,
        shape=[-1, *output.values.shape[1:]],
        parameters=TensorParameters(labels=list(output.classes)) if output.classes else None,
    )


class TensorRequest(NamedTuple):
    """A request whose tensors were read."""

    raw: Matrix
    request: InferRequest


def read(model: Model, request: InferRequest, payload: memoryview, *, max_rows: int) -> TensorRequest:
    """The raw matrix of the tensors, `payload` being the bytes after the JSON.

    Raises InvalidTensor, NulCharacter, BodyTooLarge, and InvalidData for values the model's columns do not take.
    """
    sent, names = [tensor.name for tensor in request.inputs], [column.name for column in model.inputs]
    whole = len(sent) == 1 and _all_numbers(model.inputs) and _is_matrix(request.inputs[0], names)
    if not whole:
        _demand(sent, names)
    rows = _rows(request, names if whole else None, max_rows)
    tensors = read_tensors(request.inputs, payload)
    if whole:
        return TensorRequest(exact_matrix(tensors[0], model.inputs, rows), request)
    by_name = dict(zip(sent, tensors, strict=True))
    return TensorRequest(_by_column(model, [by_name[column.name] for column in model.inputs], rows), request)


def placed(model: Model, request: InferRequest, values: Matrix, *, flat: bool, max_rows: int) -> Matrix | None:
    """The raw matrix (n, p) of numbers that were read apart, as `read` would read them; None if it has to.

    values: of the only tensor, of FP64; `flat`: in one row, else as nested lists.
    """
    [tensor] = request.inputs
    rows, *width = tensor.shape
    fits = math.prod(width) == len(model.inputs) and math.prod(tensor.shape) == values.size and rows <= max_rows
    as_said = flat or list(values.shape) == tensor.shape
    names = model.preparation.numbers
    if names is None or not (fits and as_said and _is_matrix(tensor, names)):
        return None
    return values.reshape(rows, len(model.inputs))


def infer(served: Served, sent: TensorRequest) -> Inferred:
    return write(served, sent.request, served.model.predict_raw(sent.raw))


def write(served: Served, request: InferRequest, predicted: Predicted) -> Inferred:
    """The requested outputs. Raises InvalidTensor where there is no such output."""
    given = _requested(_outputs(served.model, predicted), request)
    parts = [_written(output, binary=binary) for output, binary in given]
    document: dict[str, Any] = {"model_name": served.pointer.model, "model_version": str(served.pointer.version)}
    if request.id is not None:
        document["id"] = request.id
    document["outputs"] = [head for head, _ in parts]
    text = orjson.dumps(document, option=orjson.OPT_SERIALIZE_NUMPY)
    if not any(binary for _, binary in given):
        return Inferred(text, None, len(predicted.predictions))
    return Inferred(b"".join([text, *(tail for _, tail in parts)]), len(text), len(predicted.predictions))


def _all_numbers(columns: Sequence[InputColumn]) -> bool:
    return set(map(KIND, columns)) == {ColumnKind.NUMERIC}


def _is_matrix(tensor: InferInput, names: Sequence[str]) -> bool:
    """True if the only tensor sent is the matrix (n, p): any is, but for a column (n) or (n, 1) by its name."""
    return math.prod(tensor.shape[1:]) != 1 or tensor.name not in names


def _rows(request: InferRequest, names: Sequence[str] | None, max_rows: int) -> int:
    """Number of rows, once every shape has proved to fit: nothing is read before.

    names: of the columns of a matrix, if it is one.
    """
    rows, width = request.inputs[0].shape[0], 1 if names is None else len(names)
    for i, tensor in enumerate(request.inputs):
        if tensor.shape[0] != rows or math.prod(tensor.shape[1:]) != width:
            raise refused(f"/inputs/{i}/shape", _misshapen(names, tensor.shape))
    if rows > max_rows:
        raise BodyTooLarge(f"There are {rows} rows; one request may carry {max_rows}.")
    return rows


def _misshapen(names: Sequence[str] | None, shape: Sequence[int]) -> str:
    if names is None:
        return f"The shape {list(shape)} does not fit: each column is [rows] or [rows, 1], with the rows of the others."
    shown = ", ".join(names[:SHOWN]) + ", …" * (len(names) > SHOWN)
    return (
        f"The shape {list(shape)} does not fit: the matrix has {len(names)} columns ({shown}). "
        "Send [rows, columns], or one tensor per column by its name."
    )


def _demand(sent: Sequence[str], names: Sequence[str]) -> None:
    """Raises InvalidTensor, InvalidData unless each column has a tensor, and each tensor a column."""
    known, given = set(names), set(sent)
    if len(given) < len(sent):
        raise refused("/inputs", "Two tensors have the same name.")
    unknown = [Fault(f"/inputs/{i}/name", UNKNOWN, "unknown_column") for i, n in enumerate(sent) if n not in known]
    if absent := [name for name in names if name not in given]:
        detail = f"The model also needs the columns {', '.join(absent)}."
        faults = [Fault("/inputs", detail, "missing_columns"), *unknown[:MAX_FAULTS]]
        other = f" {len(unknown)} of the tensors sent belong to no column." if unknown else ""
        raise InvalidData(detail + other, faults=faults)
    if unknown:
        raise InvalidTensor(UNKNOWN, faults=unknown[:MAX_FAULTS])


def exact_matrix(tensor: Tensor, columns: Sequence[InputColumn], rows: int) -> Matrix:
    """The raw matrix (n, p) of one tensor. Raises InvalidTensor, InvalidData."""
    if isinstance(tensor.values, list):
        raise refused(f"{tensor.pointer}/datatype", "The column takes numbers: send a numeric datatype, such as FP64.")
    _refuse_flaws(tensor, columns)
    return np.asarray(tensor.values, np.float64).reshape(rows, len(columns))


def _by_column(model: Model, tensors: Sequence[Tensor], rows: int) -> Matrix:
    if all(c.kind == ColumnKind.NUMERIC for c in model.inputs):
        raw = np.empty((rows, len(tensors)))
        for place, (tensor, column) in enumerate(zip(tensors, model.inputs, strict=True)):
            raw[:, place] = exact_matrix(tensor, [column], rows)[:, 0]
        return raw
    cells = [_cells(tensor, column) for tensor, column in zip(tensors, model.inputs, strict=True)]
    return model.preparation.raw(pa.Table.from_arrays(cells, names=[column.name for column in model.inputs]))


def _cells(tensor: Tensor, column: InputColumn) -> pa.Array:
    values = tensor.values if isinstance(tensor.values, list) else _json_values(tensor.values)
    cells, flawed = read_cells(column, values)
    if flawed:
        raise _flawed(tensor, [(position, column, values[position]) for position in flawed[:MAX_FAULTS]], len(flawed))
    return cells


def _json_values(numbers: NDArray[Any]) -> list[Any]:
    """As they would be in a row: missing is None."""
    values: list[Any] = numbers.tolist()
    return [None if value != value else value for value in values]  # noqa: PLR0124  only NaN is unlike itself


def _refuse_flaws(tensor: Tensor, columns: Sequence[InputColumn]) -> None:
    """Values that `app.ml.tables.cells` refuses in a column of numbers, found without an object per cell."""
    values = np.asarray(tensor.values)
    if values.dtype.kind == "f":
        bad = np.isinf(values)
        if not all(map(NULLABLE, columns)):
            wanting = np.array([not column.nullable for column in columns])
            bad |= np.isnan(values) & np.tile(wanting, values.size // len(columns))
    else:
        bad = values > EXACT
        if values.dtype.kind == "i":
            bad |= values < -EXACT
    if bad.any():
        found = np.flatnonzero(bad)
        shown = zip(found[:MAX_FAULTS].tolist(), _json_values(values[found[:MAX_FAULTS]]), strict=True)
        raise _flawed(tensor, [(at, columns[at % len(columns)], value) for at, value in shown], found.size)


def _flawed(tensor: Tensor, values: Sequence[tuple[int, InputColumn, Any]], count: int) -> InvalidData:
    faults = []
    for position, column, value in values:
        code, detail = flaw(column, value) or Flaw("invalid", "")
        faults.append(Fault(tensor.place(position), detail, code))
    return InvalidData(f"The tensor holds {count} fault{'s'[: count != 1]}.", faults=faults)


def _outputs(model: Model, predicted: Predicted) -> list[Output]:
    """The protocol has no null: a row that the model rejects gets its likeliest class, see `predict_proba`."""
    if predicted.classes is None:
        if model.task.labels:
            return [Output("predict", "INT64", np.asarray(predicted.values, np.int64))]
        return [Output("predict", "FP64", np.asarray(predicted.values, np.float64))]
    kinds = {type(label) for label in predicted.classes}
    datatype = DATATYPES[kinds.pop()] if len(kinds) == 1 else "FP64"
    odds = Output("predict_proba", "FP64", np.asarray(predicted.probabilities), classes=predicted.classes)
    if datatype == "BYTES":
        return [Output("predict", datatype, predicted.values, predicted.classes), odds]
    dtype = {"BOOL": np.bool_, "INT64": np.int64, "FP64": np.float64}[datatype]
    return [Output("predict", datatype, np.array(predicted.classes, dtype)[predicted.values]), odds]


def _requested(given: Sequence[Output], request: InferRequest) -> list[tuple[Output, bool]]:
    """The requested outputs, in that order, and whether each is to be binary."""
    as_bytes = _flag(request.parameters, "binary_data_output", "", otherwise=False)
    if not request.outputs:
        single = (request.parameters or {}).get("content_type") in ONE_OUTPUT
        return list(zip(given[:1] if single else given, repeat(as_bytes)))
    by_name = {output.name: output for output in given}
    if len({requested.name for requested in request.outputs}) < len(request.outputs):
        raise refused("/outputs", "An output is requested twice.")
    return [_one(requested, by_name, f"/outputs/{i}", as_bytes) for i, requested in enumerate(request.outputs)]


def _one(requested: OutputChoice, given: dict[str, Output], at: str, as_bytes: bool) -> tuple[Output, bool]:
    if requested.name not in given:
        raise refused(f"{at}/name", f"The model's outputs are {', '.join(given)}.")
    for name in NEVER_OFFERED:
        if name in (requested.parameters or {}):
            raise refused(f"{at}/parameters/{name}", "This extension of the protocol is not offered.")
    return given[requested.name], _flag(requested.parameters, "binary_data", at, otherwise=as_bytes)


def _flag(parameters: Parameters | None, name: str, pointer: str, *, otherwise: bool) -> bool:
    value = (parameters or {}).get(name, otherwise)
    if not isinstance(value, bool):
        raise refused(f"{pointer}/parameters/{name}", "true or false is needed.")
    return value


def _written(output: Output, *, binary: bool) -> tuple[dict[str, Any], bytes]:
    """The tensor's part of the JSON, and its bytes after it."""
    head: dict[str, Any] = {
        "name": output.name,
        "shape": list(output.values.shape),
        "datatype": output.datatype,
    }
    flat, labels = np.ascontiguousarray(output.values).ravel(), output.labels
    if not binary:
        return head | {"data": _each(labels, flat) if labels else flat}, b""
    tail = b"".join(_each(list(map(_length_prefixed, labels)), flat)) if labels else _little_endian(flat)
    return head | {"parameters": {"binary_data_size": len(tail)}}, tail


def _each(of: Sequence[T], places: Labels) -> list[T]:
    found: list[T] = np.array(of, np.object_)[places].tolist()
    return found


def _length_prefixed(text: str) -> bytes:
    code = text.encode()
    return LENGTH.pack(len(code)) + code


def _little_endian(flat: NDArray[Any]) -> bytes:
    return flat.astype(flat.dtype.newbyteorder("<"), copy=False).tobytes()
