"""A table of numbers in a JSON text → float64, without a Python object per cell, where there is nothing to doubt."""

from typing import Any, NamedTuple

import numpy as np

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.decoding.decimals import BEFORE, BEHIND, U, Words, number, powered, quick_digits, quotient
from app.ml.numerics.decoding.instructions import eight_bytes, unlikely
from app.ml.numerics.jit import TEXT, inner, kernel, not_inlined

MAX_COLUMNS = 1 << 14
"""Columns of a table."""
LONGEST_NAMES = 1 << 16
MAX_SMALL_BYTES, MODEST = 1 << 16, 1 << 13
"""Bytes of a text that is read, in 0.1 ms, without giving up the GIL; numbers for which room is made unasked."""
LISTS, OBJECTS, FLAT = range(3)
"""Form of a table: `[[1, 2], [3, 4]]`, `[{"a": 1}, {"a": 2}]`, `[1, 2, 3]`."""


class Table(NamedTuple):
    values: Matrix
    """(n, p) in the order of the text, NaN for null; a flat list is one row."""
    names: bytes | None
    """Names of the columns of objects: a JSON list."""
    end: int
    """Place at which the text continues."""


def read_table(text: bytes, start: int, form: int, most: int) -> Table | None:
    """The table that begins with the bracket at `start`; None for anything but an even table of up to `most` numbers.

    Also None for a whole number beyond 2^53, more than 19 digits, what is nearer to 0 than normal floats are, and
    objects with other keys, or in another order, than the first. text: ends with "}", as a JSON object does.
    """
    read = scan.lean if len(text) > MAX_SMALL_BYTES else scan_small.lean
    names = bytearray(min(len(text), LONGEST_NAMES)) if form == OBJECTS else _NO_NAMES
    values = np.empty(_shapes[form])
    rows, width, end, named = read(text, start, form, values, names)
    if not rows:
        values = np.empty((min(most, (len(text) - start) // 2 + 1), 1))
        rows, width, end, named = read(text, start, form, values, names)
    cells = rows * width
    if not 0 < cells <= most:
        return None
    if values.shape != (rows, width):
        values = values.reshape(-1)[:cells].reshape(rows, width)
        _shapes[form] = (rows, width) if cells <= MODEST else (1, width)
    return Table(values, b"[%b]" % bytes(names[: named - 1]) if form == OBJECTS else None, end)


_NO_NAMES = bytearray()
_shapes = [(1, 1)] * 3
"""Shape of the last table of each form: clients mostly repeat it, and memory of that shape need not be cut."""


NULL = 0x7FF8 << 48
"""NaN."""


@inner
def past_space(text: bytes, position: Any) -> Any:
    while text[position] <= U(32) and (
        text[position] == U(32) or U(9) <= text[position] <= U(10) or text[position] == U(13)
    ):
        position += U(1)
    return position


@inner
def past_name(text: bytes, position: Any) -> Any:
    """Behind the string at `position`; the end of the text where there is none."""
    if text[position] != U(34):
        return U(len(text))
    position += U(1)
    while position < U(len(text)) and text[position] != U(34):
        position += U(2) if text[position] == U(92) else U(1)
    return position + U(1)


@inner
def same(text: bytes, position: Any, names: bytearray, place: Any, size: Any) -> Any:
    """True if the characters from two places are the same."""
    end = position + size
    while position + U(8) <= end:
        if eight_bytes(text, position) != eight_bytes(names, place):
            return False
        position += U(8)
        place += U(8)
    while position < end and text[position] == names[place]:
        position += U(1)
        place += U(1)
    return position == end


@not_inlined
def other(text: bytes, position: Any, room: Any) -> Any:
    """The bits of null, or of a number that is more than `quick_digits`; where it ends, and whether it is good."""
    if position - U(BEFORE) < room:
        w, behind, negative, end, good = quick_digits(text, position)
        if good and text[end] | U(32) == U(101):
            bits, end, good = powered(text, end, w, behind)
            return bits | negative << U(63), end, good
    if text[position] != U(110):
        return number(text, position)
    good = text[position + U(1)] == U(117) and text[position + U(2)] == U(108) and text[position + U(3)] == U(108)
    return U(NULL), position + U(4), good


@inner
def signed(w: Any, behind: Any, negative: Any) -> Any:
    return U(quotient(w, behind) | negative << U(63)).view(np.float64)


@inner
def new_name(text: bytes, position: Any, names: bytearray, named: Any, sizes: Words, column: Any) -> Any:  # noqa: PLR0917
    """End of the name at `position`, and the bytes of `names` there are now; 0 where it is none or finds no room."""
    end = past_name(text, position)
    if end >= U(len(text)) or column >= U(sizes.size) or named + (end - position) >= U(len(names)):
        return U(0), named
    sizes[column] = end - position
    for k in range(end - position):
        names[named + U(k)] = text[position + U(k)]
    named += end - position
    names[named] = U(44)
    return end, named + U(1)


@inner
def past_key(  # noqa: PLR0917 - as `row`
    text: bytes, position: Any, first: Any, names: bytearray, named: Any, sizes: Words, column: Any, place: Any
) -> Any:
    """Place of the value whose name is at `position`, the bytes of `names`, and of them those before the next name.

    first: whether it is a name of the first row, else it has to be that of this column. 0 where it is something else.
    """
    if first:
        end, named = new_name(text, position, names, named, sizes, column)
        if end == U(0):
            return U(0), named, place
    else:
        end = position + sizes[column]
        if place >= named or end >= U(len(text)) or not same(text, position, names, place, sizes[column]):
            return U(0), named, place
    position = past_space(text, end)
    value = past_space(text, position + U(1)) if text[position] == U(58) else U(0)
    return value, named, place + sizes[column] + U(1)


@inner
def row(  # noqa: PLR0917 - parts of it would cost more to call than they do
    text: bytes, position: Any, keyed: Any, out: Vector, cells: Any, names: bytearray, sizes: Words, named: Any
) -> Any:
    """Numbers or nulls, with commas between, from `position` into `out`, where `cells` are before; `keyed`: with names.

    Cells and bytes of `names` there are now, and where the text goes on; 0 where there is something else. Digits
    become a float when the next are read: both are long chains, and a processor looks some hundred steps ahead.
    """
    room = U(len(text)) - U(BEFORE + BEHIND - 1) if len(text) >= BEFORE + BEHIND else U(0)
    first, before, place = named == U(0), cells, U(0)
    none = cells, named, U(0)
    w, behind, negative, late = U(0), U(0), U(0), cells
    digits, point, minus, end = U(0), U(0), U(0), position
    while cells < U(out.size):
        if keyed:
            position, named, place = past_key(text, position, first, names, named, sizes, cells - before, place)
            if position == U(0):
                return none
        good = position - U(BEFORE) < room
        if good:
            digits, point, minus, end, good = quick_digits(text, position)
        if unlikely(not good) or (unlikely(text[end] != U(44)) and text[end] | U(32) == U(101)):
            out[late] = signed(w, behind, negative)
            bits, position, good = other(text, position, room)
            if not good:
                return none
            out[cells] = U(bits).view(np.float64)
            w, late = U(0), cells + U(1)
        else:
            out[late] = signed(w, behind, negative)  # if nothing is late, where something will be
            w, behind, negative, position, late = digits, point, minus, end, cells
        cells += U(1)
        if unlikely(text[position] != U(44)):
            position = past_space(text, position)
            if text[position] != U(44):
                if late < cells:
                    out[late] = signed(w, behind, negative)
                return cells, named, position
        position = past_space(text, position + U(1))
    return none


@not_inlined
def list_row(  # noqa: PLR0917 - as `row`
    text: bytes, position: Any, out: Vector, cells: Any, names: bytearray, sizes: Words, named: Any
) -> Any:
    """`row` without names: by itself it needs fewer of the processor's registers."""
    return row(text, position, False, out, cells, names, sizes, named)


@not_inlined
def object_row(  # noqa: PLR0917 - as `row`
    text: bytes, position: Any, out: Vector, cells: Any, names: bytearray, sizes: Words, named: Any
) -> Any:
    """`row` with names."""
    return row(text, position, True, out, cells, names, sizes, named)


TYPES = f"UniTuple(i8, 4)({TEXT}, u8, i8, f8[:,::1], ByteArray(u1, 1, 'C'))"


@kernel(TYPES, writes=["values"])
def scan(text: bytes, position: Any, form: int, values: Matrix, names: bytearray) -> tuple[int, int, int, int]:
    """Rows, columns, where the table ends, and the bytes of `names`; no rows where it is not as `read_table` states."""
    none = 0, 0, 0, 0
    out = values.reshape(values.size)
    sizes = np.empty(min(len(names), MAX_COLUMNS), np.uint64)
    opening, closing = (U(123), U(125)) if form == OBJECTS else (U(91), U(93))
    rows, width, cells, named = U(0), U(0), U(0), U(0)
    position = past_space(text, U(position) + U(1))
    while True:
        if form != FLAT:
            if text[position] != opening:
                return none
            position = past_space(text, position + U(1))
        before = cells
        if form == OBJECTS:
            cells, named, position = object_row(text, position, out, cells, names, sizes, named)
        else:
            cells, named, position = list_row(text, position, out, cells, names, sizes, named)
        if position == U(0) or text[position] != closing:
            return none
        if rows == U(0):
            width = cells
        if cells - before != width:
            return none
        rows += U(1)
        position = past_space(text, position + U(1)) if form != FLAT else position
        if text[position] == U(93):
            break
        if text[position] != U(44):
            return none
        position = past_space(text, position + U(1))
    return np.int64(rows), np.int64(width), np.int64(position) + 1, np.int64(named)  # type: ignore[return-value]


@kernel(TYPES, writes=["values"], keep_gil=True)
def scan_small(text: bytes, start: int, form: int, values: Matrix, names: bytearray) -> tuple[int, int, int, int]:
    """`scan`, while other threads wait."""
    return scan(text, start, form, values, names)
