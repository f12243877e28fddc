"""Columns as small whole numbers: the bin, or the rank, of every value.

A column of few different values has a bin for each; else bins hold about as many rows each. With as many bins as
values nothing is lost: splits that separate bins separate values.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Data, Labels, Matrix, Vector
from app.ml.contract.threads import run_at_once
from app.ml.numerics.row_blocks import sections
from app.ml.numerics.trees.compiled.binning import encode

MAX_BYTE_BINS = 255
"""Bins that fit a byte, together with the missing values."""


class Binned(NamedTuple):
    """Codes of n rows and d columns. A missing value has the code `bins[j]`."""

    codes: NDArray[np.uint8] | NDArray[np.int32]
    """(d, n); or (n, 8⌈m/8⌉), a row in whole words, of d bytes and those of `wide`."""
    bins: Labels
    """(d,) how many, the missing aside."""
    start: Labels
    """(d,) where each column's bins begin in `low` and `high`."""
    low: Vector
    """The smallest and the largest value in each bin."""
    high: Vector
    levels: Labels
    """(d,) categories, whose codes are the bins; 0 for a number."""

    @property
    def wide(self) -> Labels:
        """(d,) bytes of a row that a column takes beyond its first: more than MAX_BYTE_BINS categories have several.

        Each byte stands for MAX_BYTE_BINS codes in turn, and is MAX_BYTE_BINS itself where the code is another byte's.
        """
        return np.where(self.bins > MAX_BYTE_BINS, self.bins // MAX_BYTE_BINS, 0)

    @property
    def further(self) -> Labels:
        """(d,) where each column's further bytes begin in a row."""
        return self.bins.size + _starts(self.wide)


def binned(data: Data, most: int = MAX_BYTE_BINS, *, by_row: bool = False) -> Binned:
    """Columns in at most `most` bins each; a category keeps a bin of its own.

    by_row: the codes of a row lie together, in bytes.
    """
    edges, low, high, place = [], [], [], np.empty(len(data.x))
    for column, levels in zip(data.x.T, data.levels.tolist(), strict=True):
        values = np.arange(levels, dtype=np.float64) if levels else _ascending(column, place)
        edges.append(_edges(values, max(most, levels)))
        ends = np.append(np.searchsorted(values, edges[-1], side="right"), values.size)[: values.size]
        low.append(values[np.append(0, ends[:-1])[: values.size]])
        high.append(values[ends - 1])
    bins = np.array([part.size for part in low], np.intp)
    n, d = data.x.shape
    none = np.zeros(0)  # of no columns
    limits = np.concatenate([none, *low]), np.concatenate([none, *high])
    table = Binned(np.zeros((0, 0), np.uint8), bins, _starts(bins), *limits, data.levels)
    if by_row:
        codes = np.zeros((n, -(-(d + int(table.wide.sum())) // 8) * 8), np.uint8)
        _encode(data.x, [part[:MAX_BYTE_BINS] for part in edges], np.minimum(bins, MAX_BYTE_BINS), codes.T)
        _encode_further(data.x, table, codes)
    else:
        codes = np.empty((d, n), np.uint8 if bins.max(initial=0) <= MAX_BYTE_BINS else np.int32)
        _encode(data.x, edges, bins, codes)
    return table._replace(codes=codes)


def _encode(x: Matrix, edges: list[Vector], bins: Labels, codes: NDArray[Any]) -> None:
    """The codes (d, n), or more columns; of sections of rows at once on free cores."""
    table, step = _padded(edges)
    run_at_once([partial(encode, x[rows], table, step, bins, codes[:, rows]) for rows in sections(len(x), 1)])


def _encode_further(x: Matrix, table: Binned, codes: NDArray[np.uint8]) -> None:
    """The further bytes of columns of many categories."""
    for j in np.flatnonzero(table.wide):
        code = np.where(np.isnan(x[:, j]), table.bins[j], x[:, j])
        for turn in range(table.wide[j]):
            bin_in_turn = code - MAX_BYTE_BINS * (turn + 1)
            codes[:, table.further[j] + turn] = np.where(
                (bin_in_turn >= 0) & (bin_in_turn < MAX_BYTE_BINS), bin_in_turn, MAX_BYTE_BINS
            )


def ranked(data: Data) -> tuple[Binned, NDArray[np.int32]]:
    """A bin for every value, and the rows (d, n) of each column in order of it, the missing last."""
    n, d = data.x.shape
    order, codes, bins = np.empty((d, n), np.int32), np.empty((d, n), np.int32), np.empty(d, np.intp)
    values, size = np.empty(d * n + int(data.levels.sum())), 0
    for j, (levels, rows) in enumerate(zip(data.levels, order, strict=True)):
        column = data.x[:, j].copy()
        rows[:] = np.argsort(column, kind="stable")
        present = column[rows][: n - int(np.isnan(column).sum())]
        fresh = np.append(True, present[1:] > present[:-1])[: present.size]
        column_values = np.arange(levels, dtype=np.float64) if levels else present[fresh]
        bins[j] = codes[j] = column_values.size
        codes[j, rows[: present.size]] = present if levels else np.cumsum(fresh) - 1
        values[size : size + column_values.size] = column_values
        size += column_values.size
    values.resize(size, refcheck=False)  # where it is, without a copy
    return Binned(codes, bins, _starts(bins), values, values, data.levels), order


def _starts(bins: Labels) -> Labels:
    starts: Labels = np.cumsum(bins) - bins
    return starts


def _ascending(column: Vector, place: Vector) -> Vector:
    """The known values of a column (n,) in order, in `place` (n,)."""
    place[:] = column
    place.sort()
    return place[: np.searchsorted(place, np.nan)]


def _edges(values: Vector, most: int) -> Vector:
    """Numbers between the bins of a sorted column: `x <= edge` is on the left."""
    rises = values[1:] > values[:-1]
    if np.count_nonzero(rises) < most:
        fresh = np.flatnonzero(rises) + 1
    else:  # the first new values from so many on
        wanted = np.arange(1, most) * values.size // most
        ends = np.searchsorted(values, values[wanted], side="right")
        starts = np.where(rises[wanted - 1], wanted, ends)
        fresh = np.unique(np.minimum(starts, np.searchsorted(values, values[-1])))
    below, above = values[fresh - 1], values[fresh]
    middle = below / 2 + above / 2
    edges: Vector = np.where((below <= middle) & (middle < above), middle, below)
    return edges


def _padded(edges: list[Vector]) -> tuple[Matrix, int]:
    """All edges as rows of a power of two less one, the rest infinite; and the first step of the search."""
    width = 1 << max(int(max((part.size for part in edges), default=0)), 1).bit_length()
    table = np.full((len(edges), width), np.inf)
    for row, part in zip(table, edges, strict=True):
        row[: part.size] = part
    return table, width // 2
