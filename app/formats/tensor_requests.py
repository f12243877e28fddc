"""Open Inference requests: JSON and tensors → the raw matrix of a model."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pydantic import ValidationError

from app.base.errors import BodyTooLarge, InvalidData, InvalidRequest
from app.base.faults import Fault
from app.base.settings import KiB
from app.base.validation import validation_faults
from app.formats.bytes import Sent
from app.formats.json_tables import STANDS, cut
from app.formats.strict_json import parse
from app.formats.tensor_decoding import InvalidTensor, Tensor, binary_size, read_tensors, refused
from app.formats.tensor_values import all_numbers, cells_of, exact_matrix
from app.ml.contract.algorithm import Matrix
from app.ml.contract.columns import ColumnKind
from app.ml.models.model import Model
from app.ml.numerics.decoding.json_numbers import FLAT
from app.ml.tables.rows import MAX_FAULTS
from app.schemas.open_inference import InferInput, InferRequest

UNKNOWN = "The model has no column of this name."
MAX_NAMED_COLUMNS = 20
"""Columns named in an error."""
FP64 = np.dtype("<f8")
LONGEST_HEAD = 4 * KiB
"""Heads of binary requests are remembered: 256 of them are at most a MiB."""


class TensorRequest(NamedTuple):
    """A request whose tensors were read."""

    raw: Matrix
    request: InferRequest


def read_request(body: Sent, end: int, model: Model, *, max_rows: int, max_depth: int) -> TensorRequest:
    """A body whose JSON ends at `end`. Raises what `read` raises, the kinds of MalformedJSON, and InvalidRequest."""
    view = memoryview(body)
    text, payload = bytes(body if end == len(body) else view[:end]), view[end:]
    if not payload:
        plain = matrix_request(text, model, max_rows=max_rows, max_depth=max_depth)
    elif end <= LONGEST_HEAD:
        plain = binary_matrix(_matrix_head(text, max_depth), payload, model, max_rows=max_rows)
    else:
        plain = None
    if plain is not None:
        return plain
    read_head = _head if payload and end <= LONGEST_HEAD else _head.__wrapped__
    return read(model, read_head(text, max_depth), payload, max_rows=max_rows)


class _MatrixHead(NamedTuple):
    """The JSON of a request whose only tensor is a binary matrix of FP64."""

    request: InferRequest
    rows: int
    width: int


@lru_cache(maxsize=256)
def _matrix_head(text: bytes, depth: int) -> _MatrixHead | None:
    """None for any other request."""
    request = _head(text, depth)
    first, *others = request.inputs
    shape, size = first.shape, 8 * math.prod(first.shape)
    is_plain = first.parameters == {"binary_data_size": size} and type(first.parameters["binary_data_size"]) is int
    if others or first.data is not None or first.datatype != "FP64" or len(shape) != 2 or not is_plain:
        return None
    return _MatrixHead(request, *shape)


def binary_matrix(
    head: _MatrixHead | None, payload: memoryview, model: Model, *, max_rows: int
) -> TensorRequest | None:
    """The request that `read` makes of a matrix of finite numbers; else None."""
    if head is None or len(payload) != 8 * head.rows * head.width or head.rows > max_rows:
        return None
    names = model.preparation.numbers
    if names is None or head.width != len(names) or not _is_matrix(head.request.inputs[0], names):
        return None
    values = np.frombuffer(payload, FP64)
    if not values.flags.aligned:
        values = values.copy()
    if not math.isfinite(values.sum()):  # a sum of finite ones that is not is read the other way
        return None
    return TensorRequest(values.reshape(head.rows, head.width), head.request)


@lru_cache(maxsize=256)
def _head(text: bytes, depth: int) -> InferRequest:
    """The JSON before binary tensors, which holds all but the numbers: mostly the same again."""
    return parsed(parse(text, depth))


def matrix_request(text: bytes, model: Model, *, max_rows: int, max_depth: int) -> TensorRequest | None:
    """The request that `read` makes of a text with a matrix of numbers and nothing after it; else None."""
    cut_request = cut(text, b"data", _understood, max_depth, most=max_rows * len(model.inputs))
    if cut_request is None:
        return None
    raw = placed(model, cut_request.rest, cut_request.values, flat=cut_request.form == FLAT, max_rows=max_rows)
    return None if raw is None else TensorRequest(raw, cut_request.rest)


def _understood(frame: Any, form: int) -> InferRequest | None:
    request = parsed(frame)
    tensor = request.inputs[0]
    plain = len(request.inputs) == 1 and tensor.data == STANDS[form] and tensor.datatype == "FP64"
    return request if plain and binary_size(tensor.parameters, "") is None else None


def parsed(document: object) -> InferRequest:
    try:
        return InferRequest.model_validate(document)
    except ValidationError as error:
        errors = error.errors(include_url=False)[:MAX_FAULTS]
        in_body = [{**error_, "loc": ("body", *error_["loc"])} for error_ in errors]
        raise InvalidRequest(faults=validation_faults(in_body, InferRequest)) from None


def read(model: Model, request: InferRequest, payload: memoryview, *, max_rows: int) -> TensorRequest:
    """The raw matrix of the tensors, `payload` being the bytes after the JSON.

    Raises InvalidTensor, NulCharacter, BodyTooLarge, and InvalidData for values the model's columns do not take.
    """
    sent, names = [tensor.name for tensor in request.inputs], [column.name for column in model.inputs]
    whole = len(sent) == 1 and all_numbers(model.inputs) and _is_matrix(request.inputs[0], names)
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
    names, count = model.preparation.numbers, math.prod(width)
    if names is None or count != len(names) or rows * count != values.size or rows > max_rows:
        return None
    if not (flat or list(values.shape) == tensor.shape) or not _is_matrix(tensor, names):
        return None
    return values.reshape(rows, count)


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
    shown = ", ".join(names[:MAX_NAMED_COLUMNS]) + ", …" * (len(names) > MAX_NAMED_COLUMNS)
    return (
        f"The shape {list(shape)} does not fit: the matrix has {len(names)} columns ({shown}). "
        "Send [rows, columns], or one tensor per column by its name."
    )


def _demand(sent: Sequence[str], names: Sequence[str]) -> None:
    """Raises InvalidTensor, InvalidData unless each column has a tensor, and each tensor a column."""
    expected, sent_names = set(names), set(sent)
    if len(sent_names) < len(sent):
        raise refused("/inputs", "Two tensors have the same name.")
    unknown = [Fault(f"/inputs/{i}/name", UNKNOWN, "unknown_column") for i, n in enumerate(sent) if n not in expected]
    if absent := [name for name in names if name not in sent_names]:
        detail = f"The model also needs the columns {', '.join(absent)}."
        faults = [Fault("/inputs", detail, "missing_columns"), *unknown[:MAX_FAULTS]]
        other = f" {len(unknown)} of the tensors sent belong to no column." if unknown else ""
        raise InvalidData(detail + other, faults=faults)
    if unknown:
        raise InvalidTensor(UNKNOWN, faults=unknown[:MAX_FAULTS])


def _by_column(model: Model, tensors: Sequence[Tensor], rows: int) -> Matrix:
    if all(c.kind == ColumnKind.NUMERIC for c in model.inputs):
        raw = np.empty((rows, len(tensors)))
        for place, (tensor, column) in enumerate(zip(tensors, model.inputs, strict=True)):
            raw[:, place] = exact_matrix(tensor, [column], rows)[:, 0]
        return raw
    cells = [cells_of(tensor, column) for tensor, column in zip(tensors, model.inputs, strict=True)]
    return model.preparation.raw(pa.Table.from_arrays(cells, names=[column.name for column in model.inputs]))
