"""A table of numbers in a JSON text → float64, without a Python object per cell, where there is nothing to doubt."""

from typing import Any, NamedTuple

import numpy as np

from app.ml.contract import Matrix, Vector
from app.ml.numerics.compiled import TEXT, apart, inner, kernel
from app.ml.numerics.decimals import BEFORE, BEHIND, U, Words, number, quick_number
from app.ml.numerics.instructions import eight_bytes, unlikely

WIDEST = 1 << 14
"""Columns of a table."""
LONGEST_NAMES = 1 << 16
SMALL, MODEST = 1 << 16, 1 << 13
"""Bytes of a text that is read, in 0.1 ms, without giving up the GIL; numbers for which room is made unasked."""
LISTS, OBJECTS, FLAT = range(3)
"""What a table is made of: `[[1, 2], [3, 4]]`, `[{"a": 1}, {"a": 2}]`, `[1, 2, 3]`."""


class Table(NamedTuple):
    values: Matrix
    """(n, p) in the order of the text, NaN for null; a flat list is one row."""
    names: bytes | None
    """Of the columns of objects: a JSON list."""
    end: int
    """Where the text goes on."""


def read_table(text: bytes, at: int, form: int, most: int) -> Table | None:
    """The table that begins with the bracket at `at`; None for anything but an even table of up to `most` numbers.

    Also None for a whole number beyond 2^53, more than 19 digits, what is nearer to 0 than normal floats are, and
    objects with other keys, or in another order, than the first. text: ends with "}", as a JSON object does.
    """
    read = scan.lean if len(text) > SMALL else scan_small.lean
    names = bytearray(min(len(text), LONGEST_NAMES)) if form == OBJECTS else _NO_NAMES
    values = np.empty(_shapes[form])
    rows, width, end, named = read(text, at, form, values, names)
    if not rows:
        values = np.empty((min(most, (len(text) - at) // 2 + 1), 1))
        rows, width, end, named = read(text, at, form, values, names)
    cells = rows * width
    if not 0 < cells <= most:
        return None
    if values.shape != (rows, width):
        values = values.reshape(-1)[:cells].reshape(rows, width)
        _shapes[form] = (rows, width) if cells <= MODEST else (1, width)
    return Table(values, b"[%b]" % bytes(names[: named - 1]) if form == OBJECTS else None, end)


_NO_NAMES = bytearray()
_shapes = [(1, 1)] * 3
"""Of the last table of each form: who asks again mostly asks for as much, and room of that shape need not be cut."""


NULL = 0x7FF8 << 48
"""NaN."""


@inner
def past_space(text: bytes, at: Any) -> Any:
    while text[at] <= U(32) and (text[at] == U(32) or U(9) <= text[at] <= U(10) or text[at] == U(13)):
        at += U(1)
    return at


@inner
def past_name(text: bytes, at: Any) -> Any:
    """Behind the string at `at`; the end of the text where there is none."""
    if text[at] != U(34):
        return U(len(text))
    at += U(1)
    while at < U(len(text)) and text[at] != U(34):
        at += U(2) if text[at] == U(92) else U(1)
    return at + U(1)


@inner
def same(text: bytes, at: Any, names: bytearray, place: Any, size: Any) -> Any:
    """Whether the characters from two places are the same."""
    end = at + size
    while at + U(8) <= end:
        if eight_bytes(text, at) != eight_bytes(names, place):
            return False
        at += U(8)
        place += U(8)
    while at < end and text[at] == names[place]:
        at += U(1)
        place += U(1)
    return at == end


@inner
def cell(text: bytes, at: Any, room: Any) -> Any:
    """The bits of the number or null at `at`, as `number` gives them. room: how far ahead there is some to look at."""
    if at - U(BEFORE) < room:
        bits, end, good = quick_number(text, at)
        if good:
            return bits, end, True
    if text[at] != U(110):
        return number(text, at)
    good = text[at + U(1)] == U(117) and text[at + U(2)] == U(108) and text[at + U(3)] == U(108)
    return U(NULL), at + U(4), good


@apart
def row(  # noqa: PLR0917 - parts of it would cost more to call than they do
    text: bytes, at: Any, keyed: Any, out: Vector, cells: Any, names: bytearray, sizes: Words, named: Any
) -> Any:
    """Numbers, or nulls, with commas between them from `at` into `out`, where `cells` are before; `keyed`, with names.

    Cells and bytes of `names` there are now, and where the text goes on; 0 where there is something else.
    """
    room = U(len(text)) - U(BEFORE + BEHIND - 1) if len(text) >= BEFORE + BEHIND else U(0)
    first, before, place = named == U(0), cells, U(0)
    none = cells, named, U(0)
    while cells < U(out.size):
        if keyed:
            column = cells - before
            if first:
                end = past_name(text, at)
                if end >= U(len(text)) or column >= U(sizes.size) or named + (end - at) >= U(len(names)):
                    return none
                sizes[column] = end - at
                for k in range(end - at):
                    names[named + U(k)] = text[at + U(k)]
                named += end - at
                names[named] = U(44)
                named += U(1)
            elif (
                place >= named or at + sizes[column] >= U(len(text)) or not same(text, at, names, place, sizes[column])
            ):
                return none
            at = past_space(text, at + sizes[column])
            place += sizes[column] + U(1)
            if text[at] != U(58):
                return none
            at = past_space(text, at + U(1))
        bits, at, good = cell(text, at, room)
        if unlikely(not good):
            return none
        out[cells] = U(bits).view(np.float64)
        cells += U(1)
        at = past_space(text, at)
        if text[at] != U(44):
            return cells, named, at
        at = past_space(text, at + U(1))
    return none


TYPES = f"UniTuple(i8, 4)({TEXT}, u8, i8, f8[:,::1], ByteArray(u1, 1, 'C'))"


@kernel(TYPES, writes=["values"])
def scan(text: bytes, at: Any, form: int, values: Matrix, names: bytearray) -> tuple[int, int, int, int]:
    """Rows, columns, where the table ends, and the bytes of `names`; no rows where it is not as `read_table` says."""
    none = 0, 0, 0, 0
    out = values.reshape(values.size)
    sizes = np.empty(min(len(names), WIDEST), np.uint64)
    opening, closing = (U(123), U(125)) if form == OBJECTS else (U(91), U(93))
    rows, width, cells, named = U(0), U(0), U(0), U(0)
    at = past_space(text, U(at) + U(1))
    while True:
        if form != FLAT:
            if text[at] != opening:
                return none
            at = past_space(text, at + U(1))
        before = cells
        cells, named, at = row(text, at, form == OBJECTS, out, cells, names, sizes, named)
        if at == U(0) or text[at] != closing:
            return none
        if rows == U(0):
            width = cells
        if cells - before != width:
            return none
        rows += U(1)
        at = past_space(text, at + U(1)) if form != FLAT else at
        if text[at] == U(93):
            break
        if text[at] != U(44):
            return none
        at = past_space(text, at + U(1))
    return np.int64(rows), np.int64(width), np.int64(at) + 1, np.int64(named)  # type: ignore[return-value]


@kernel(TYPES, writes=["values"], keep_gil=True)
def scan_small(text: bytes, at: int, form: int, values: Matrix, names: bytearray) -> tuple[int, int, int, int]:
    """`scan`, while other threads wait."""
    return scan(text, at, form, values, names)
