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
from app.ml.contract import Labels, Matrix
from app.ml.plain import order_of
from app.settings import KiB, Settings

NUMBERS = b"0123456789+-.eE \t\r\n"
DATA = b'"data":'
DEPTH = 3
LONGEST_HEAD = 16 * KiB
"""Heads are remembered: 256 of them are at most 4 MiB."""


def read_matrix(body: bytes, names: tuple[str, ...] | None, settings: Settings) -> Matrix | None:
    """The raw matrix (n, p) of a body, as the general path would read it; None if that path has to look at it.

    names: of the model's inputs, if all of them are numbers (`Preparation.numbers`).
    """
    start = body.find(b'"data"')
    if names is None or not 0 < start <= LONGEST_HEAD or settings.max_json_depth < DEPTH:
        return None
    order = _order(body[:start], names)
    if order is None:
        return None
    rows = _rows(body[start:].translate(None, NUMBERS), len(names))
    return _matrix(body, (rows, len(names)), order) if 0 < rows <= settings.max_predict_rows else None


def _rows(skeleton: bytes, width: int) -> int:
    """Of a table of such a width and nothing else, 0 if it is anything else."""
    row = b"[" + b"," * (width - 1) + b"],"
    rows, rest = divmod(len(skeleton) - len(DATA) - len(b"[]}") + 1, len(row))
    whole = rows > 0 and not rest and skeleton == DATA + b"[" + (row * rows)[:-1] + b"]}"
    return rows if whole else 0


def _matrix(body: bytes, shape: tuple[int, int], order: Labels | slice) -> Matrix | None:
    try:
        raw = np.array(orjson.loads(body)["data"], np.float64)
    except ValueError:  # of orjson too; and rows of an only column may lack their cell
        return None
    if raw.shape != shape or max(raw.max(), -raw.min()) >= EXACT:
        return None
    return np.ascontiguousarray(raw[:, order])


@lru_cache(maxsize=256)
def _order(head: bytes, names: Sequence[str]) -> Labels | slice | None:
    """Where each input stands among the columns, if these are all the inputs and no others."""
    try:
        body = parse(head + b'"data":[]}', Settings.model_construct(max_json_depth=DEPTH))
    except ValiantError:
        return None
    if not isinstance(body, dict) or body.keys() != {"columns", "data"}:
        return None
    return order_of(body["columns"], names)
