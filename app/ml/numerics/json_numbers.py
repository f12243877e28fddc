"""A table of numbers in a JSON text → float64, without a Python object per cell, where there is nothing to doubt."""

from typing import Any, NamedTuple

import numpy as np

from app.ml.contract import Matrix
from app.ml.numerics.compiled import TEXT, inner, kernel
from app.ml.numerics.decimals import U, number

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


TYPES = f"UniTuple(i8, 4)({TEXT}, u8, i8, f8[:,::1], ByteArray(u1, 1, 'C'))"


@kernel(TYPES, writes=["values"])
def scan(  # noqa: C901, PLR0911, PLR0912, PLR0915 - parts of it would cost more to call than they do
    text: bytes, at: Any, form: int, values: Matrix, names: bytearray
) -> tuple[int, int, int, int]:
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
        before, place = cells, U(0)
        while True:
            if cells >= U(out.size):
                return none
            if form == OBJECTS:
                column = cells - before
                if rows == U(0):
                    end = past_name(text, at)
                    if end >= U(len(text)) or column >= U(sizes.size) or named + (end - at) >= U(len(names)):
                        return none
                    sizes[column] = end - at
                    for k in range(end - at):
                        names[named + U(k)] = text[at + U(k)]
                    named += end - at
                    names[named] = U(44)
                    named += U(1)
                elif column >= width or at + sizes[column] >= U(len(text)):
                    return none
                else:
                    for k in range(sizes[column]):
                        if text[at + U(k)] != names[place + U(k)]:
                            return none
                at = past_space(text, at + sizes[column])
                place += sizes[column] + U(1)
                if text[at] != U(58):
                    return none
                at = past_space(text, at + U(1))
            if text[at] == U(110):
                if text[at + U(1)] != U(117) or text[at + U(2)] != U(108) or text[at + U(3)] != U(108):
                    return none
                out[cells] = np.nan
                at += U(4)
            else:
                x, at, good = number(text, at)
                if not good:
                    return none
                out[cells] = x
            cells += U(1)
            at = past_space(text, at)
            if text[at] == U(44):
                at = past_space(text, at + U(1))
            elif text[at] == closing:
                at += U(1)
                break
            else:
                return none
        if rows == U(0):
            width = cells
        if cells - before != width:
            return none
        rows += U(1)
        at = past_space(text, at) if form != FLAT else at
        if form == FLAT or text[at] == U(93):
            at += U(form != FLAT)
            break
        if text[at] != U(44):
            return none
        at = past_space(text, at + U(1))
    return np.int64(rows), np.int64(width), np.int64(at), np.int64(named)  # type: ignore[return-value]


@kernel(TYPES, writes=["values"], keep_gil=True)
def scan_small(text: bytes, at: int, form: int, values: Matrix, names: bytearray) -> tuple[int, int, int, int]:
    """`scan`, while other threads wait."""
    return scan(text, at, form, values, names)
