"""Arrays and JSON as one block of bytes, in the safetensors format; hostile bytes are found out before they cost.

    8 bytes   length of the header, little-endian
    header    JSON: {"__metadata__": {"valiant": "<canonical JSON>"}, "<name>": {"dtype", "shape", "data_offsets"}, …}
    data      the arrays, one after the other without holes

The metadata has one key only, because the library's map of them has no order: so the same content gives the same bytes.
Arrays are read as views into the block: reading costs the header, whatever the size of the model.
"""

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from app.base.errors import CorruptModel, InvalidData
from app.ml.contract.algorithm import JSON

KEY = "valiant"
MAX_HEADER_BYTES = 8 << 20
"""Parsing takes about twenty times this, at worst."""
MAX_DIMENSIONS = 8
_PREFIX = 8
_DTYPES = {
    "F64": np.float64, "F32": np.float32,
    "I64": np.int64, "I32": np.int32, "I16": np.int16, "I8": np.int8,
    "U64": np.uint64, "U32": np.uint32, "U16": np.uint16, "U8": np.uint8,
    "BOOL": np.bool_,
}  # fmt: skip
_WRITABLE = {np.dtype(dtype) for dtype in _DTYPES.values()}

Arrays = Mapping[str, NDArray[Any]]


class _Place(NamedTuple):
    begin: int
    end: int
    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]


def write(document: JSON, arrays: Arrays) -> bytes:
    """The document and the named arrays as bytes; the same content gives the same bytes.

    Raises InvalidData for a document too large to be read back.
    """
    for name, array in arrays.items():
        if array.dtype not in _WRITABLE:
            raise TypeError(f"{name} has the dtype {array.dtype}, which models do not store.")
    blob = save({name: np.asarray(array, order="C") for name, array in arrays.items()}, {KEY: canonical(document)})
    if int.from_bytes(blob[:_PREFIX], "little") > MAX_HEADER_BYTES:
        raise InvalidData("The model has too many columns, categories or members to be stored: take fewer.")
    return blob


def canonical(document: JSON) -> str:
    """JSON with sorted keys and no spaces. Raises ValueError for numbers that are not finite."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=True)


def read_document(blob: bytes | memoryview) -> JSON:
    """The document alone. Raises CorruptModel."""
    document, _ = _header(memoryview(blob))
    return document


def read(blob: bytes | memoryview) -> tuple[JSON, dict[str, NDArray[Any]]]:
    """The document, and the arrays as read-only views into `blob`. Raises CorruptModel."""
    view = memoryview(blob).toreadonly()
    document, places = _header(view)
    return document, {place.name: _array(view, place) for place in places}


def _array(view: memoryview, place: _Place) -> NDArray[Any]:
    flat = np.frombuffer(view[place.begin : place.end], place.dtype)
    if not flat.flags.aligned:  # compiled code reads whole words
        flat = flat.copy()
        flat.setflags(write=False)
    return flat.reshape(place.shape)


def _header(view: memoryview) -> tuple[JSON, list[_Place]]:
    """The arrays of the block and their places; every size checked against the block's own."""
    _require(view.nbytes >= _PREFIX, "it is too short")
    length = int.from_bytes(view[:_PREFIX], "little")
    _require(length <= min(MAX_HEADER_BYTES, view.nbytes - _PREFIX), "its header is too long")
    start = _PREFIX + length
    header = _object(_parsed(bytes(view[_PREFIX:start])))
    metadata = _object(header.pop("__metadata__", None))
    _require(metadata.keys() == {KEY} and isinstance(metadata[KEY], str), "it is not one of this service")
    places = sorted(_place(name, entry, start) for name, entry in header.items())
    edge = start
    for place in places:
        _require(place.begin == edge, "its parts overlap or leave holes")
        edge = place.end
    _require(edge == view.nbytes, "its length is not that of the header")
    return _parsed(metadata[KEY]), places


def _place(name: str, entry: JSON, start: int) -> _Place:
    fields = _object(entry)
    _require(fields.keys() == {"dtype", "shape", "data_offsets"}, "a part is not described")
    dtype = _DTYPES.get(fields["dtype"]) if isinstance(fields["dtype"], str) else None
    if dtype is None:
        raise CorruptModel("The stored model is not readable: a part has an unknown type.")
    shape, offsets = _counts(fields["shape"]), _counts(fields["data_offsets"])
    _require(len(shape) <= MAX_DIMENSIONS and len(offsets) == 2, "a part has a strange shape")
    begin, end = offsets
    size = math.prod(shape) * np.dtype(dtype).itemsize  # whole numbers in Python do not overflow
    _require(end - begin == size, "a part is not as long as its shape")
    return _Place(start + begin, start + end, name, np.dtype(dtype), tuple(shape))


def _counts(value: JSON) -> list[int]:
    if isinstance(value, list) and all(type(count) is int and 0 <= count < 2**48 for count in value):
        return value
    raise CorruptModel("The stored model is not readable: a size is not a whole number.")


def _object(value: JSON) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise CorruptModel("The stored model is not readable: its header is not an object.")


def _parsed(text: str | bytes) -> JSON:
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refused)
    except (ValueError, RecursionError):  # UnicodeDecodeError is a ValueError too
        raise CorruptModel("The stored model is not readable: its header is not JSON.") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError("a key occurs twice")
    return entries


def _refused(constant: str) -> None:
    raise ValueError(constant)


def _require(condition: bool, why: str) -> None:
    if not condition:
        raise CorruptModel(f"The stored model is not readable: {why}.")
