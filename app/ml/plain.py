"""Rows of ordinary numbers → the raw matrix at once.

A shortcut past `app.ml.rows`, which has the last word on everything else: where a body is in the least
unusual, the answer here is None. Where it is not, both give the same matrix to the bit.
"""

from collections.abc import Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np

from app.ml.cells import EXACT
from app.ml.contract import Labels
from app.ml.rows import Incoming, whole

NUMBERS = frozenset({int, float, type(None)})


def plain_rows(body: object, names: Sequence[str], *, max_rows: int) -> Incoming | None:
    """What `read_rows` gives, its table as a raw matrix (n, p); None where it must decide.

    body: as parsed from JSON. names: of the model's inputs, all of them nullable numbers, in their order.
    """
    if type(body) is not dict:
        return None
    if body.keys() == {"columns", "data"}:
        rows, order = body["data"], order_of(body["columns"], names)
    elif body.keys() == {"rows"}:
        rows, order = _values(body["rows"], names), slice(None)
    else:
        return None
    if order is None or not _even(rows, list, len(names)) or len(rows) > max_rows:
        return None
    types = set(map(type, chain.from_iterable(rows)))
    if not types <= NUMBERS:
        return None
    raw = np.array(rows, np.float64)
    if int in types and (np.abs(raw) >= EXACT).any():  # 2^53 + 1 rounds to 2^53
        return None
    return whole(np.ascontiguousarray(raw[:, order]))


def _even(rows: object, kind: type, width: int) -> bool:
    """Whether these are one or more lists or objects, each of this many values."""
    return type(rows) is list and set(map(type, rows)) == {kind} and set(map(len, rows)) == {width}


def _values(rows: Any, names: Sequence[str]) -> list[list[Any]] | None:
    """The values of each object in the order of the names."""
    if not _even(rows, dict, len(names)):
        return None
    if len(names) == 1:
        return [list(row.values()) for row in rows] if all(names[0] in row for row in rows) else None
    try:
        return list(map(list, map(itemgetter(*names), rows)))
    except KeyError:
        return None


def order_of(header: object, names: Sequence[str]) -> Labels | slice | None:
    """Where each name stands in a header that has these names, each once, and no other."""
    if type(header) is not list or len(header) != len(names) or set(map(type, header)) != {str}:
        return None
    if all(map(str.__eq__, header, names)):
        return slice(None)
    place = {name: i for i, name in enumerate(header)}
    found = [place.get(name, -1) for name in names]
    return None if min(found) < 0 else np.array(found, np.intp)
