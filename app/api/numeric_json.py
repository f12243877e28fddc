"""A shortcut for bodies of nothing but numbers: straight into one matrix, without a look at each cell in Python.

It answers only what it is sure of, `{"columns": […], "data": [[…], …]}` in this order with the inputs of a numeric
model as the columns. With everything that may stand inside a number taken out, the text behind the columns must be
the empty skeleton of a table: no strings, no nulls, no booleans, no further keys, and rows of one length.
Whatever else a body is, `app.api.strict_json` and `app.ml.rows` read it or say what is wrong with it.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import orjson

from app.api.strict_json import parse
from app.errors import ValiantError
from app.ml.cells import EXACT
from app.ml.contract import Matrix
from app.ml.schema import ColumnKind, InputColumn
from app.settings import KiB, Settings

NUMBERS = b"0123456789+-.eE \t\r\n"
DATA = b'"data":'
DEPTH = 3
LONGEST_HEAD = 16 * KiB
"""Heads are remembered: 256 of them are at most 4 MiB."""


def read_matrix(body: bytes, inputs: tuple[InputColumn, ...], settings: Settings) -> Matrix | None:
    """The raw matrix (n, p) of a body, as the general path would read it; None if that path has to look at it."""
    start = body.find(b'"data"')
    if not 0 < start <= LONGEST_HEAD or settings.max_json_depth < DEPTH:
        return None
    names = tuple([column.name for column in inputs if column.kind == ColumnKind.NUMERIC])
    places = _places(body[:start], names) if len(names) == len(inputs) else None
    if places is None:
        return None
    rows = _rows(body[start:].translate(None, NUMBERS), len(names))
    return _matrix(body, rows, places) if 0 < rows <= settings.max_predict_rows else None


def _rows(skeleton: bytes, width: int) -> int:
    """Of a table of such a width and nothing else, 0 if it is anything else."""
    row = b"[" + b"," * (width - 1) + b"],"
    rows, rest = divmod(len(skeleton) - len(DATA) - len(b"[]}") + 1, len(row))
    whole = rows > 0 and not rest and skeleton == DATA + b"[" + (row * rows)[:-1] + b"]}"
    return rows if whole else 0


def _matrix(body: bytes, rows: int, places: tuple[int, ...]) -> Matrix | None:
    try:
        raw = np.array(orjson.loads(body)["data"], np.float64)
    except ValueError:  # of orjson too; and rows of an only column may lack their cell
        return None
    if raw.shape != (rows, len(places)) or max(raw.max(), -raw.min()) >= EXACT:
        return None
    return raw if places == tuple(range(len(places))) else raw.take(places, axis=1)


@lru_cache(maxsize=256)
def _places(head: bytes, names: Sequence[str]) -> tuple[int, ...] | None:
    """Where each input stands among the columns, if these are all the inputs and no others."""
    try:
        body = parse(head + b'"data":[]}', Settings.model_construct(max_json_depth=DEPTH))
    except ValiantError:
        return None
    columns = body.get("columns") if isinstance(body, dict) and body.keys() == {"columns", "data"} else None
    if not isinstance(columns, list) or not all(type(name) is str for name in columns):
        return None
    if len(columns) != len(names) or set(columns) != set(names):
        return None
    return tuple(map(columns.index, names))
