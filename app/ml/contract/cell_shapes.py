"""Cells of text grouped by their shape, in which every digit is a 9: what a pattern finds in one, it finds in all.

A column of numbers or dates has few shapes, however many values it has, so that a pattern which distinguishes no digit
from another is matched once for each shape, and its parts are cut out of all cells of the shape together.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

if TYPE_CHECKING:
    import re

ZERO = ord("0")
Bytes = NDArray[np.uint8]


class ShapeGroup(NamedTuple):
    """The cells of one shape."""

    shape: str
    rows: NDArray[np.intp]
    """(n,) their rows."""
    letters: Bytes
    """(n, length) their bytes."""


class Part(NamedTuple):
    """Bytes of a part of a cell."""

    start: int
    end: int


def letters_of(values: pa.Array) -> tuple[NDArray[np.int32], Bytes]:
    """Offsets of all cells, with the end of the last, and the bytes of all."""
    _, offsets, data = values.buffers()
    ends = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1]
    return ends, np.frombuffer(data or b"", np.uint8)


def group_by_shape(cells: pa.Array) -> Iterator[ShapeGroup]:
    """Groups of all strings that are not null."""
    rows = np.arange(len(cells))
    if cells.null_count:
        rows, cells = np.flatnonzero(cells.is_valid().to_numpy(zero_copy_only=False)), cells.drop_null()
    if not len(cells):
        return
    ends, letters = letters_of(cells)
    start, letters = int(ends[0]), letters[ends[0] : ends[-1]]
    digits = letters.copy()
    digits[letters - ZERO < 10] = ZERO + 9  # bytes below wrap around
    shapes = pa.StringArray.from_buffers(len(cells), pa.py_buffer(ends - start), pa.py_buffer(digits))
    encoded = shapes.dictionary_encode()
    names, codes = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
    if len(names) == 1:
        yield ShapeGroup(names[0], rows, letters.reshape(len(cells), -1))
        return
    order = np.argsort(codes.astype(np.int16) if len(names) < 1 << 15 else codes, kind="stable")
    borders = np.cumsum(np.bincount(codes))[:-1]
    for name, chosen in zip(names, np.split(order, borders), strict=True):
        starts = ends[chosen] - start
        yield ShapeGroup(name, rows[chosen], letters[starts[:, None] + np.arange(len(name.encode()))])


def part_of(match: "re.Match[str]", name: str) -> Part | None:
    """The bytes of a named group in the cells of the matched shape; None where it has no part, or an empty one."""
    if name not in match.re.groupindex or not match[name]:
        return None
    start, end = (len(match.string[:letter].encode()) for letter in match.span(name))
    return Part(start, end)


def numbers_in(letters: Bytes, part: Part) -> NDArray[np.int64]:
    """(n,) the whole numbers that the digits of this part are."""
    numbers = np.zeros(len(letters), np.int64)
    for column in range(part.start, part.end):
        numbers = 10 * numbers + (letters[:, column] - ZERO)
    return numbers
