"""Predictions as arrays in numpy's npy: no text, no rounding."""

import io
import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from app.base.errors import InvalidData
from app.formats.bytes import Sent
from app.formats.contribution_fields import contribution_matrix
from app.formats.malformed import MalformedTable
from app.formats.prediction import NO_EXTRAS, Extras, Version, WrittenPrediction, intervals, numbers_of, outputs_of
from app.formats.tensor_decoding import Tensor
from app.formats.tensor_values import exact_matrix
from app.ml.contract.columns import ColumnKind
from app.ml.models.model import Model, Predicted
from app.ml.tables.rows import Incoming, read_rows, whole

HEADER_LENGTH = 10_000
_READERS = {(1, 0): npy_format.read_array_header_1_0, (2, 0): npy_format.read_array_header_2_0}


def npy_rows(body: Sent, model: Model, *, max_rows: int, let_bad_rows_pass: bool) -> Incoming:
    """An array (n, p), or (n,) where the model has one input, in the order of the model's inputs; NaN is missing.

    Raises MalformedTable, InvalidData.
    """
    if not takes_matrix(model):
        raise InvalidData("An npy body is for models whose inputs are all numbers that may be missing.")
    values = _array(body)
    matrix = values.reshape(-1, 1) if values.ndim == 1 else values
    return matrix_rows(matrix, model, max_rows=max_rows, let_bad_rows_pass=let_bad_rows_pass)


def takes_matrix(model: Model) -> bool:
    """True for a model whose inputs are all numbers that may be missing."""
    return all(column.kind == ColumnKind.NUMERIC and column.nullable for column in model.inputs)


def matrix_rows(values: NDArray[Any], model: Model, *, max_rows: int, let_bad_rows_pass: bool) -> Incoming:
    """Rows (n, p) of numbers in the order of the inputs, for a model of numbers that may be missing.

    Raises InvalidData.
    """
    inputs = model.inputs
    if values.shape[1] != len(inputs) or not len(values):
        raise InvalidData(f"The array needs rows of {len(inputs)} numbers, in the order of the model's inputs.")
    try:
        return whole(exact_matrix(Tensor(values.ravel(), len(inputs), "", nested=True), inputs, len(values)))
    except InvalidData:
        if not let_bad_rows_pass:
            raise
    data = [[None if cell != cell else cell for cell in row] for row in values.tolist()]  # noqa: PLR0124  NaN
    document = {"columns": [column.name for column in inputs], "data": data}
    return read_rows(document, inputs, max_rows=max_rows, let_bad_rows_pass=let_bad_rows_pass)


def _array(body: Sent) -> NDArray[Any]:
    start = npy_format.MAGIC_LEN
    size = body[start : start + (4 if body[6:7] == b"\2" else 2)]  # in version 2 it has four bytes
    start += len(size) + int.from_bytes(size, "little")
    shape, by_columns, dtype = _header(bytes(body[: min(start, HEADER_LENGTH)]))
    if math.prod(shape) * dtype.itemsize != len(body) - start:
        raise MalformedTable("The header of the array does not fit the size of the body.")
    return np.frombuffer(body, dtype, offset=start).reshape(shape, order="F" if by_columns else "C")


@lru_cache(maxsize=256)
def _header(head: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether columns come first, and type. Raises MalformedTable."""
    file = io.BytesIO(head)
    try:
        shape, by_columns, dtype = _READERS[npy_format.read_magic(file)](file, max_header_size=HEADER_LENGTH)
    except Exception:  # noqa: BLE001  numpy tokenizes and evaluates the header: a lie may make it raise anything
        raise MalformedTable("The body is not readable as npy: its header is damaged.") from None
    if dtype.kind not in "iuf" or dtype.itemsize > 8 or len(shape) not in {1, 2} or min(shape) < 0:
        raise MalformedTable("Only arrays of numbers up to 64 bits, of one or two dimensions, are read.")
    return shape, by_columns, dtype


def as_npy(
    version: Version, model: Model, incoming: Incoming, predicted: Predicted | None, extras: Extras = NO_EXTRAS
) -> WrittenPrediction:
    """float64: the probabilities (n, k) of a classification, a column per class; else the predictions, (n,) or (n, p).

    With intervals (n, 3): prediction, lower, upper. Outputs are further columns, in the order of the request, and after
    them, score by score, the base and the contributions. Bad rows are NaN. What a policy decides has no place here.
    """
    values = numbers_of(model, predicted)
    if extras.confidence is not None:
        values = np.column_stack([values, intervals(predicted)])
    if extras.include:
        values = np.column_stack([values, *(part for _, part in outputs_of(model, predicted, extras))])
    if extras.explains and predicted is not None:
        values = np.column_stack([values, contribution_matrix(predicted)])
    values = _spread(incoming, values)
    body = _npy_header(values.shape) + values.astype("<f8", copy=False).tobytes()
    return WrittenPrediction(body, version.version, incoming.ignored, incoming.rows)


@lru_cache(maxsize=256)
def _npy_header(shape: tuple[int, ...]) -> bytes:
    file = io.BytesIO()
    npy_format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return file.getvalue()


def _spread(incoming: Incoming, values: NDArray[np.float64]) -> NDArray[np.float64]:
    if len(values) == incoming.rows:
        return values
    spread = np.full((incoming.rows, *values.shape[1:]), np.nan)
    spread[incoming.good] = values
    return spread
