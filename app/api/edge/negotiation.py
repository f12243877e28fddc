"""Content negotiation of bodies and responses, by Content-Type and Accept; and rows that come as npy."""

import io
import math
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from app.api.edge.body import Headers, Sent
from app.errors import InvalidData, NotAcceptable, UnsupportedMediaType, ValiantError
from app.formats.json import as_json
from app.formats.npy import as_arrow, as_npy
from app.formats.strict_json import demand_json
from app.formats.tensor_requests import exact_matrix
from app.formats.tensors import Tensor
from app.ingest.options import ENCODINGS, encoding_named
from app.ml.tables.rows import Incoming, whole
from app.services.predictions import Served

JSON, CSV, NPY, ARROW = "application/json", "text/csv", "application/x-npy", "application/vnd.apache.arrow.stream"
BINARY: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}
WRITERS = {JSON: as_json, NPY: as_npy, ARROW: as_arrow}
HEADER_LENGTH = 10_000
_READERS = {(1, 0): npy_format.read_array_header_1_0, (2, 0): npy_format.read_array_header_2_0}
Read = Callable[[object], Incoming]
"""The general reader, of the document that JSON would be."""


class MalformedTable(ValiantError):
    code, status, title = "malformed_table", 400, "The body is no table of the kind it says"


def kind_of(headers: Headers) -> str:
    """The media type of the body. Raises UnsupportedMediaType."""
    sent = headers.get(b"content-type", b"")
    if sent == b"application/json":
        return JSON
    kind, _, _ = sent.decode("latin-1").lower().partition(";")
    if kind.strip() in {NPY, ARROW}:
        return kind.strip()
    if kind.strip() == CSV:
        return CSV
    demand_json(headers)
    return JSON


def encoding_of(headers: Headers) -> str | None:
    """The encoding that a CSV body says it has; None where it says none, or UTF-8. Raises UnsupportedMediaType."""
    kind, _, parameters = headers.get(b"content-type", b"").decode("latin-1").lower().partition(";")
    name, _, charset = parameters.strip().partition("=")
    if kind.strip() != CSV or name != "charset" or (charset := charset.strip('" ')) in {"utf-8", "us-ascii"}:
        return None
    if (found := encoding_named(charset)) is None:
        raise UnsupportedMediaType(f"text/csv has one of the encodings {', '.join(ENCODINGS)}.")
    return found


def accepted(headers: Headers) -> str:
    """The media type of the response that the caller prefers. Raises NotAcceptable."""
    requested = headers.get(b"accept")
    if requested is None or requested == b"*/*" or not requested.strip():
        return JSON
    likes = {kind: _liking(requested.decode("latin-1").lower(), kind) for kind in WRITERS}
    best = max(WRITERS, key=likes.__getitem__)
    if not likes[best]:
        raise NotAcceptable(f"Answers are {', '.join(WRITERS)}.")
    return best


def _liking(requested: str, kind: str) -> float:
    """RFC 9110, 12.5.1: the quality of the most specific range that takes this kind; 0 if none does."""
    group = f"{kind.partition('/')[0]}/*"
    found = {"*/*": 0.0, group: -1.0, kind: -1.0}
    for part in requested.split(","):
        name, *parameters = (chunk.strip() for chunk in part.split(";"))
        if name in found:
            quality = next((chunk[2:] for chunk in parameters if chunk.startswith("q=")), "1")
            found[name] = float(quality) if re.fullmatch(r"[01](\.[0-9]{0,3})?", quality, re.ASCII) else 0.0
    return next(quality for quality in (found[kind], found[group], found["*/*"]) if quality >= 0)


def npy_rows(body: Sent, served: Served, read: Read, *, let_bad_rows_pass: bool) -> Incoming:
    """An array (n, p), or (n,) where the model has one input, in the order of the model's inputs; NaN is missing.

    Raises MalformedTable, InvalidData.
    """
    if served.model.preparation.numbers is None:
        raise InvalidData("An npy body is for models whose inputs are all numbers that may be missing.")
    values = _array(body)
    return matrix_rows(
        values.reshape(-1, 1) if values.ndim == 1 else values, served, read, let_bad_rows_pass=let_bad_rows_pass
    )


def matrix_rows(values: NDArray[Any], served: Served, read: Read, *, let_bad_rows_pass: bool) -> Incoming:
    """Rows (n, p) of numbers in the order of the inputs, for a model of numbers that may be missing.

    Raises InvalidData.
    """
    inputs = served.model.inputs
    if values.shape[1] != len(inputs) or not len(values):
        raise InvalidData(f"The array needs rows of {len(inputs)} numbers, in the order of the model's inputs.")
    try:
        return whole(exact_matrix(Tensor(values.ravel(), len(inputs), "", nested=True), inputs, len(values)))
    except InvalidData:
        if not let_bad_rows_pass:
            raise
    data = [[None if cell != cell else cell for cell in row] for row in values.tolist()]  # noqa: PLR0124  NaN
    return read({"columns": [column.name for column in inputs], "data": data})


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
