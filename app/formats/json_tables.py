"""Tables of numbers in a JSON body, read apart from the rest of it.

The numbers are nearly all of a large body, and the least of its meaning. `cut` takes them out of the text, straight
into one matrix, and leaves a word nobody can guess where they stood; what remains is a few names, which the strict
reader reads, or remembers from the last body. Whatever is in the least unusual is not cut: then
`app.formats.strict_json` reads the whole body, and reports what is wrong with it. Both paths give the same numbers
to the bit.
"""

import re
import secrets
from collections.abc import Callable
from functools import lru_cache
from itertools import chain
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import orjson

from app.base.errors import ValiantError
from app.base.settings import KiB
from app.formats.strict_json import parse
from app.ml.contract.algorithm import Labels, Matrix
from app.ml.numerics.decoding.json_numbers import FLAT, LISTS, OBJECTS, Table, read_table, scan_small
from app.ml.tables.cells import EXACT

T = TypeVar("T")
WORD = secrets.token_hex(16)
"""No sender knows it: where it is found, it was put."""
STANDS = {LISTS: [[WORD]], OBJECTS: [{WORD: 0}], FLAT: [WORD]}
"""For a table of each form; as deep as it was."""
TEXTS = {form: orjson.dumps(stands) for form, stands in STANDS.items()}
FORMS = {b"[": LISTS, b"{": OBJECTS, b"": FLAT}
ENDS = {LISTS: re.compile(rb"\][ \t\r\n]*\]"), OBJECTS: re.compile(rb"\}[ \t\r\n]*\]"), FLAT: re.compile(rb"\]")}
NUMBERS = frozenset({int, float, type(None)})
SQUARE = float(EXACT) ** 2
LONGEST_FRAME = 16 * KiB
"""Frames are remembered: 256 of them are at most 4 MiB."""


class Cut(NamedTuple, Generic[T]):
    rest: T
    """The result of `understand` for the body, where the entry of `STANDS` for this form stood for the table."""
    form: int
    values: Matrix
    """(n, p) in the order of the text, NaN for null; a flat list is one row."""
    names: tuple[str, ...]
    """Names of the columns, if the rows are objects."""


def cut(
    body: bytes, keys: bytes, understand: Callable[[Any, int], T | None], max_depth: int, *, most: int
) -> Cut[T] | None:
    """The table of up to `most` numbers that is the value of the first of such keys; None if there is any doubt.

    keys: names with a bar between. max_depth: levels of nesting that the rest may have. understand: makes something of
    the rest, given the form of what was cut, or None; what it makes is remembered, so it must not be changed.
    """
    start = _found(body, keys)
    if start is None:
        return None
    _, head, form = start
    array_start = len(head)
    text = body if body.endswith(b"}") else body.rstrip()
    table = _read(text, array_start, form, most)
    if table is None or len(text) - table.end + array_start > LONGEST_FRAME:
        return None
    frame = _rest(head, text[table.end :], form, max_depth, understand)
    names = () if table.names is None else _names(table.names)
    return None if frame is None or names is None else Cut(frame, form, table.values, names)


class _Start(NamedTuple):
    looked_at: bytes
    """All that was read to find it: a body that begins so has its table at the same place, in the same form."""
    head: bytes
    """The bytes before the table."""
    form: int


_last: dict[bytes, _Start] = {}
"""By keys. A repeated caller mostly sends the same names."""


def _found(body: bytes, keys: bytes) -> _Start | None:
    last = _last.get(keys)
    if last is not None and body.startswith(last.looked_at):
        return last
    start = _start(keys).search(body, 0, LONGEST_FRAME)
    if start is None:
        return None
    looked_at = body[: start.end() + (not start[2])]  # without a second bracket, up to what is there instead
    start_of_table = _Start(looked_at, body[: start.start(1)], FORMS[start[2]])
    if start.end() < len(body):
        _last[keys] = start_of_table
    return start_of_table


@lru_cache
def _start(keys: bytes) -> re.Pattern[bytes]:
    """A key behind a brace or a comma is no part of a string, unless the rest of the body is no JSON."""
    return re.compile(rb'[{,][ \t\r\n]*"(?:' + keys + rb')"[ \t\r\n]*:[ \t\r\n]*(\[[ \t\r\n]*([\[{]?))')


@lru_cache(maxsize=256)
def _rest(head: bytes, tail: bytes, form: int, depth: int, understand: Callable[[Any, int], T | None]) -> T | None:
    try:
        return understand(parse(head + TEXTS[form] + tail, depth), form)
    except ValiantError:
        return None


@lru_cache(maxsize=256)
def _names(text: bytes) -> tuple[str, ...] | None:
    try:
        names = parse(text, 1)
    except ValiantError:
        return None
    return tuple(names) if isinstance(names, list) and len(set(names)) == len(names) else None


def _read(text: bytes, start: int, form: int, most: int) -> Table | None:
    """By compiled code where it is there: see `app.services.kernels.kernel_loading`."""
    return (read_table if scan_small.ready else interpreted)(text, start, form, most)


def interpreted(text: bytes, start: int, form: int, most: int) -> Table | None:
    """The table as of `read_table`, by objects of Python."""
    match = ENDS[form].search(text, start)
    if match is None:
        return None
    end, names = match.end(), None
    if (
        form != OBJECTS
        and not text.find(b'"', start, end) == text.find(b"t", start, end) == text.find(b"f", start, end) == -1
    ):
        return None  # strings, true, false: no list of numbers and nulls holds these
    try:
        rows = orjson.loads(memoryview(text)[start:end])
        if form == OBJECTS:
            names, rows = _columns(rows, text.count(b":", start, end))
        values = np.array(rows, np.float64, ndmin=2)
    except (ValueError, TypeError):
        return None
    if values.ndim != 2 or not 0 < values.size <= most or _large(values):
        return None
    return Table(values, names, end)


def _columns(rows: list[Any], colons: int) -> tuple[bytes, list[list[Any]]]:
    """The names of objects that all have the same, in one order, and their numbers. Raises ValueError for others."""
    keys = set(map(tuple, rows)) if set(map(type, rows)) == {dict} else set()
    if len(keys) != 1 or colons != len(rows) * len(rows[0]):
        raise ValueError
    cells = [list(row.values()) for row in rows]
    if not set(map(type, chain.from_iterable(cells))) <= NUMBERS:
        raise ValueError
    return orjson.dumps(list(keys.pop())), cells


def _large(values: Matrix) -> bool:
    """True if whole numbers may be rounded: 2^53 + 1 is 2^53 then; longer ones were no whole numbers."""
    if np.vdot(values, values) < SQUARE:  # at one look, unless something is missing
        return False
    return bool(np.fmax.reduce(np.abs(values), axis=None) >= EXACT)


@lru_cache(maxsize=256)
def order_of(header: tuple[str, ...], names: tuple[str, ...]) -> Labels | None:
    """Position of each name in a header that has these names, each once, and no other."""
    place = {name: i for i, name in enumerate(header)}
    places = [place.get(name, -1) for name in names]
    return None if len(header) != len(names) or min(places) < 0 else np.array(places, np.intp)
