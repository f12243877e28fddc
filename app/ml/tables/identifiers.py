"""Columns whose values name rows: all different, or counting up."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.ml.tables.column_statistics import COUNTED
from app.ml.tables.data_sheet import Chunks

IDENTIFIER_ROWS = 20
_ID_WORDS = {"id", "ids", "key", "index", "idx", "nr", "number", "uuid", "guid"}


def identifier_like(name: str, data_type: pa.DataType, chunks: Chunks, count: int, distinct: int | None) -> bool:
    if pa.types.is_string(data_type):
        return _all_different(chunks, count, distinct)
    if not pa.types.is_integer(data_type):
        return False
    return _counts_up(chunks) or (_named_like_identifier(name) and _all_different(chunks, count, distinct))


def _all_different(chunks: Chunks, count: int, distinct: int | None) -> bool:
    if distinct is not None:
        return distinct == count
    head: list[pa.Array] = []
    room = COUNTED
    for chunk in chunks():
        head.append(chunk.drop_null()[:room])
        room -= len(head[-1])
        if room <= 0:
            break
    values = pa.concat_arrays(head)
    return len(pc.unique(values)) == len(values)


def _counts_up(chunks: Chunks) -> bool:
    """Whole numbers 0, 1, 2, … or 1, 2, 3, … in the order of the rows."""
    expected: int | None = None
    for chunk in chunks():
        values = chunk.drop_null().to_numpy()
        if not len(values):
            continue
        start = int(values[0]) if expected is None else expected
        if (expected is None and start not in {0, 1}) or not np.array_equal(
            values, np.arange(start, start + len(values))
        ):
            return False
        expected = start + len(values)
    return True


def _named_like_identifier(name: str) -> bool:
    """True if the last word is one for identifiers: `customer_id`, `orderNumber`, `ID`."""
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+", name)
    return bool(words) and words[-1].lower() in _ID_WORDS
