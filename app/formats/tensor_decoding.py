"""Tensors as they arrive → flat arrays, strictly: no value is rounded, guessed or read beyond its bytes.

Sizes are compared with what was really sent before any memory is taken. Binary tensors are little-endian and
row-major; elements of BYTES carry their length, four bytes, before them.
"""

import math
import struct
from collections.abc import Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.base.errors import NulCharacter, ValiantError
from app.base.faults import Fault
from app.ml.tables.cells import is_within_64_bits
from app.ml.tables.rows import MAX_FAULTS
from app.schemas.open_inference import InferInput, Parameters

DTYPES = {
    **{f"UINT{bits}": np.dtype(f"<u{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"INT{bits}": np.dtype(f"<i{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"FP{bits}": np.dtype(f"<f{bits // 8}") for bits in (16, 32, 64)},
}
"""Types of numbers by their names in the protocol."""
LENGTH = struct.Struct("<I")
ENCODED = frozenset({"base64", "pd_json"})
"""Content types of MLServer's codecs whose strings stand for other values."""


LOOKED_AT = 20_000
"""Values of a tensor among which those that do not fit are looked for, one by one."""


class InvalidTensor(ValiantError):
    code, status, title = "invalid_tensor", 400, "The tensors do not fit the protocol or the model"


def refused(pointer: str, detail: str) -> InvalidTensor:
    return InvalidTensor(detail, faults=[Fault(pointer, detail, InvalidTensor.code)])


class Tensor(NamedTuple):
    """Flat, in row-major order."""

    values: NDArray[Any] | list[Any]
    """Numbers in their datatype, NaN where missing; BOOL and BYTES as bool and str, None where missing."""
    width: int
    pointer: str
    nested: bool

    def place(self, position: int) -> str:
        """The JSON pointer of a value."""
        row, column = divmod(position, self.width)
        return f"{self.pointer}/data/{row}/{column}" if self.nested else f"{self.pointer}/data/{position}"


def read_tensors(inputs: Sequence[InferInput], payload: memoryview) -> list[Tensor]:
    """All tensors; `payload` is what follows the JSON, and is used up. Raises InvalidTensor, NulCharacter."""
    sizes = [binary_size(tensor.parameters, f"/inputs/{i}") for i, tensor in enumerate(inputs)]
    if sum(size or 0 for size in sizes) != len(payload):
        raise refused("/inputs", "The sizes of the binary tensors do not add up to the bytes after the JSON.")
    tensors, start = [], 0
    for i, (tensor, size) in enumerate(zip(inputs, sizes, strict=True)):
        pointer = f"/inputs/{i}"
        if (tensor.data is None) == (size is None):
            raise refused(pointer, "A tensor has either data or a binary_data_size.")
        _demand_plain(tensor.parameters, pointer)
        if size is None:
            tensors.append(_of_json(tensor, tensor.data or [], pointer))
        else:
            values = _of_bytes(tensor, payload[start : start + size], pointer)
            tensors.append(Tensor(values, _width(tensor), pointer, nested=False))
            start += size
    return tensors


def binary_size(parameters: Parameters | None, pointer: str) -> int | None:
    size = (parameters or {}).get("binary_data_size")
    if size is not None and (type(size) is not int or size < 0):
        raise refused(f"{pointer}/parameters/binary_data_size", "A number of bytes is needed.")
    return size


def _demand_plain(parameters: Parameters | None, pointer: str) -> None:
    """Raises InvalidTensor where the strings are encoded once more: as they stand they would be unknown categories."""
    kind = (parameters or {}).get("content_type")
    if isinstance(kind, str) and kind in ENCODED:
        detail = f"The content type {kind} is not supported. Send plain UTF-8 strings, as the content type str does."
        raise refused(f"{pointer}/parameters/content_type", detail)


def _width(tensor: InferInput) -> int:
    return math.prod(tensor.shape[1:])


def _of_json(tensor: InferInput, data: list[Any], pointer: str) -> Tensor:
    nested = len(tensor.shape) == 2 and type(next(iter(data), None)) is list
    width = _width(tensor)
    if nested:
        if not all(type(row) is list and len(row) == width for row in data):
            raise refused(f"{pointer}/data", f"Nested rows are lists of {width}, as the shape states.")
        data = list(chain.from_iterable(data))
    if len(data) != math.prod(tensor.shape):
        raise refused(f"{pointer}/data", "The number of values is not the product of the shape.")
    values = _typed(_kind(tensor.datatype, pointer), data)
    if values is None:
        raise _misfit(tensor.datatype, Tensor(data, width, pointer, nested))
    return Tensor(values, width, pointer, nested)


class _Kind(NamedTuple):
    """The types of JSON for a datatype."""

    types: frozenset[type]
    takes: str
    dtype: np.dtype[Any] | None
    """None for values that stay objects."""


NONE = type(None)
TEXTS = {
    "BOOL": _Kind(frozenset({bool, NONE}), "true, false and null", None),
    "BYTES": _Kind(frozenset({str, NONE}), "strings and null", None),
}


def _kind(datatype: str, pointer: str) -> _Kind:
    if datatype in TEXTS:
        return TEXTS[datatype]
    dtype = _dtype(datatype, pointer)
    if dtype.kind in "ui":
        return _Kind(frozenset({int}), "whole numbers, and has no missing value: send FP64 with null for one", dtype)
    return _Kind(frozenset({int, float, NONE}), "numbers and null", dtype)


def _typed(kind: _Kind, data: list[Any]) -> NDArray[Any] | list[Any] | None:
    """None if a value does not fit."""
    types = set(map(type, data))
    if not types <= kind.types:
        return None
    if kind.dtype is None:
        return data
    return _integers(kind.dtype, data) if kind.dtype.kind in "ui" else _floats(kind.dtype, data, types)


def _integers(dtype: np.dtype[Any], data: list[int]) -> NDArray[Any] | None:
    bounds = np.iinfo(dtype)
    return np.array(data, dtype) if bounds.min <= min(data) <= max(data) <= bounds.max else None


def _floats(dtype: np.dtype[Any], data: list[Any], types: set[type]) -> NDArray[Any] | None:
    """The nearest value of the type to each decimal number, and in float64 to each whole one of 64 bits.

    Any other whole number must be exactly one of them.
    """
    with np.errstate(over="ignore"):
        values = np.array(data, np.float64).astype(dtype)
    whole = [(i, value) for i, value in enumerate(data) if type(value) is int] if int in types else []
    exact = all(
        is_within_64_bits(value) if dtype == np.float64 else math.isfinite(values[i]) and int(values[i]) == value
        for i, value in whole
    )
    return values if exact and not np.isinf(values).any() else None


def _dtype(datatype: str, pointer: str) -> np.dtype[Any]:
    if datatype not in DTYPES:
        raise refused(f"{pointer}/datatype", f"The datatypes are BOOL, {', '.join(DTYPES)} and BYTES.")
    return DTYPES[datatype]


def _misfit(datatype: str, tensor: Tensor) -> InvalidTensor:
    """The refusal of values from JSON, which names their places."""
    kind = _kind(datatype, tensor.pointer)
    begin = list(tensor.values[:LOOKED_AT])
    strange = (i for i, value in enumerate(begin) if _typed(kind, [value]) is None)
    faults = [
        Fault(
            tensor.place(i),
            f"{datatype} takes {kind.takes}."
            if type(begin[i]) not in kind.types
            else f"{datatype} cannot hold this number without a loss: send a wider datatype.",
            InvalidTensor.code,
        )
        for i in islice(strange, MAX_FAULTS)
    ]
    if not faults:
        return refused(f"{tensor.pointer}/data", f"A value is beyond {datatype}, which takes {kind.takes}.")
    more = f" {len(faults)} values are alike: see errors." if len(faults) > 1 else ""
    return InvalidTensor(f"{faults[0].detail}{more}", faults=faults)


def _of_bytes(tensor: InferInput, raw: memoryview, pointer: str) -> NDArray[Any] | list[Any]:
    count = math.prod(tensor.shape)
    if tensor.datatype == "BYTES":
        return _texts(raw, count, pointer)
    dtype = np.dtype(np.uint8) if tensor.datatype == "BOOL" else _dtype(tensor.datatype, pointer)
    if len(raw) != count * dtype.itemsize:
        raise refused(pointer, "binary_data_size is not the product of the shape and the size of the datatype.")
    values = np.require(np.frombuffer(raw, dtype), requirements="A")  # the JSON before it may have any length
    if tensor.datatype != "BOOL":
        return values
    if values.max(initial=0) > 1:
        raise refused(pointer, "The bytes of BOOL are 0 and 1.")
    return values.astype(np.bool_).tolist()  # type: ignore[no-any-return]  # one dimension: a list


def _texts(raw: memoryview, count: int, pointer: str) -> list[Any]:
    texts: list[bytes] = []
    position = 0
    while position < len(raw) and len(texts) < count:
        end = position + LENGTH.size
        if end <= len(raw):
            end += LENGTH.unpack_from(raw, position)[0]
        if end > len(raw) or end - position < LENGTH.size:
            break
        texts.append(bytes(raw[position + LENGTH.size : end]))
        position = end
    if position != len(raw) or len(texts) != count:
        raise refused(pointer, "The elements of BYTES do not fill binary_data_size, or are not as many as the shape.")
    if any(b"\0" in text for text in texts):
        raise NulCharacter
    try:
        return [text.decode() for text in texts]
    except UnicodeDecodeError:
        raise refused(pointer, "An element of BYTES is not UTF-8.") from None
