"""Splits in order of time: every test row is later than all rows that its fit has learned from.

Rows of the same time are never on different sides. Folds are expanding windows: of K folds the first is tested by a fit
of the rows before it, each further one by a fit of all rows before it. The earliest rows are tested by none.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from app.base.errors import InvalidData
from app.ml.contract.algorithm import Labels, Vector
from app.ml.preparation.arrow_columns import measured
from app.ml.preparation.target import present


class TimeOrder(NamedTuple):
    """When each of n rows was."""

    codes: Labels
    """(n,) of the times, from 0, ascending."""
    texts: pa.Array
    """(T,) each time as people read it."""

    def take(self, rows: Labels) -> Labels:
        """Codes of some of the rows alone, again from 0 without gaps."""
        return np.unique(self.codes[rows], return_inverse=True)[1]

    def first(self, rows: Labels) -> str:
        """The earliest time of these rows."""
        return str(self.texts[int(self.codes[rows].min())].as_py())


def read_times(table: pa.Table, name: str, rows: Labels) -> TimeOrder:
    """Order of these rows (n,) by a column of dates or numbers. Raises InvalidData where one lacks a value."""
    cells = table.column(name).take(pa.array(rows))
    if not present(cells).all():
        raise InvalidData(f"Rows lack a value in {name!r}, by which they are to be ordered.")
    values: Vector = measured(cells, name)
    _, first, codes = np.unique(values, return_index=True, return_inverse=True)
    return TimeOrder(codes, cells.take(pa.array(first)).cast(pa.string()).combine_chunks())


def latest(times: Labels, fraction: float) -> Labels:
    """Places of the latest rows, at most this fraction of all unless the last time alone has more; none for 0, and
    where all rows are of one time. times: (n,) codes.
    """
    counts = np.bincount(times)
    if fraction <= 0 or counts.size < 2:
        return np.zeros(0, np.intp)
    held = int(np.searchsorted(np.cumsum(counts[::-1]), round(fraction * times.size), side="right"))
    return np.flatnonzero(times >= counts.size - min(max(held, 1), counts.size - 1))


def expanding(times: Labels, folds: int) -> list[tuple[Labels, Labels]]:
    """Training and test rows of at most so many folds, of about as many test rows each. times: (n,) codes."""
    before = np.cumsum(np.bincount(times))
    wanted = np.arange(1, folds + 1) * times.size / (folds + 1)
    if before.size < 2:
        return []
    cuts = np.unique(np.minimum(np.searchsorted(before, wanted) + 1, before.size - 1))
    cuts = np.append(cuts, before.size)
    return [
        (np.flatnonzero(times < start), np.flatnonzero((times >= start) & (times < stop)))
        for start, stop in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)
    ]
