"""Trees that each lower a loss a little further, on the same binned columns and scratch memory."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract import Labels, Vector
from app.ml.numerics.binning import Binned
from app.ml.numerics.kernels.boosting import boost
from app.ml.numerics.kernels.boosting_splits import CELLS, LEFT
from app.ml.numerics.trees import Trees

SUMS, FINEST = 61, 20
"""Bits for the sums of gradients and of curvatures over all rows; and, at most, for one row's curvature."""
LEAST_CURVATURE = 1e-3
"""Of a leaf: below it the step G/H would be taken on nothing. What is less is taken for it."""
LOT = 4096
"""Rows whose slopes are told at a time."""
POOL = 2**19
"""Bytes to keep histograms in, or a tenth of what the codes take: where that is few, more rows are counted again."""


class Limits(NamedTuple):
    """When a leaf is left alone, and how far a step goes."""

    max_leaves: int
    max_depth: int
    min_samples_leaf: float
    l2: float
    rate: float
    category_smoothing: float
    """Added to the curvature of each category to put them in order; and the rows it needs to be named."""
    category_l2: float
    """Added to `l2` of what a question about categories parts."""


class Slopes(NamedTuple):
    """Gradient and curvature of n rows."""

    told: NDArray[np.float32]
    """(n, 2) in `units`; or, of rows that weigh the same, (n, 1) gradients, of classes in units of that weight."""
    units: Vector
    """(2,) what brings both near 1."""
    largest: Vector
    """(2,) sizes in `units`."""
    numbers: bool
    """The curvature of a row is its weight; else it is that of a probability."""


class Booster:
    """Grows trees for gradients of n rows and d columns. Memory: a byte a cell, 8 a row, and the histograms."""

    def __init__(self, table: Binned, taught: NDArray[np.bool_], limits: Limits) -> None:
        """table: binned by row. taught: (n,) the rows that trees grow from."""
        n, width = table.codes.shape
        self._table, self._taught, self._limits = table, taught, limits
        self._rows, self._spare = np.empty((2, n), np.int32)  # as much as sorting a column took: before anything else
        room = max(POOL, table.codes.nbytes // 10) // (8 * width * CELLS)
        self._pool = np.empty((min(limits.max_leaves + 1, max(2, room)), width * CELLS), np.int64)
        nodes = 2 * limits.max_leaves
        kinds = np.int32, np.float64, np.int32, np.int8, np.float64, np.float64, np.float64
        self._scratch: list[NDArray[Any]] = [np.empty(nodes, kind) for kind in kinds]
        self._sides = np.empty((nodes, CELLS), np.uint8)
        self._codes = [_codes(table, j) for j in range(table.levels.size)]

    def grow(self, slopes: Slopes, raw: Vector) -> tuple[Trees, Vector]:
        """One tree of Newton steps, and what each of its questions gains; adds its answers to `raw` (n,) of the rows
        it grew from.
        """
        n, limits = len(slopes.told), self._limits
        steps = 1 if slopes.numbers and slopes.told.shape[1] == 1 else _steps(n)
        bits = (n * steps).bit_length() + 1
        gradients, curvatures = _scale(slopes.largest[0], 2 ** (SUMS - bits) // n), _scale(slopes.largest[1], steps)
        steep, bent = slopes.units
        m = 0
        for first in range(0, n, LOT):
            some = np.flatnonzero(self._taught[first : first + LOT])
            self._rows[m : m + some.size] = some + first
            m += some.size
        codes, bins, start, low, high, levels = self._table
        size = boost(
            *(codes.view(np.uint64), codes, bins, start, low, high, levels),
            *(self._rows[:m], self._spare, slopes.told, slopes.numbers, self._pool),
            *(bits, gradients, curvatures, limits.l2 * bent, limits.min_samples_leaf, LEAST_CURVATURE * bent),
            *(limits.rate, bent / steep, limits.category_smoothing * bent, limits.category_l2 * bent),
            *(limits.category_smoothing, limits.max_leaves, limits.max_depth, raw, *self._scratch, self._sides),
        )
        column, threshold, left, missing, share, value, gain = (array[:size].copy() for array in self._scratch)
        members = self._members(column, threshold)
        root = np.zeros(1, np.int32)
        tree = Trees(root, column, threshold, left, missing, share, levels.astype(np.int64), members, value[:, None])
        return tree, gain * bent / steep / steep

    def _members(self, column: NDArray[np.int32], threshold: Vector) -> NDArray[np.bool_]:
        """The members of all subsets that nodes ask about; where each begins goes into `threshold`."""
        asked = np.flatnonzero((column >= 0) & (self._table.levels[column] > 0))
        parts = [self._sides[node][self._codes[column[node]]] == LEFT for node in asked]
        sizes = self._table.levels[column[asked]]
        threshold[asked] = np.cumsum(sizes) - sizes
        return np.concatenate([np.zeros(0, np.bool_), *parts])


def _codes(table: Binned, j: int) -> Labels:
    """The code of each category of a column."""
    high = table.high[table.start[j] : table.start[j] + table.bins[j]]
    codes: Labels = np.searchsorted(high, np.arange(table.levels[j]))
    return codes


def _steps(rows: int) -> int:
    """That a curvature is told in where they differ: as many as leave the same number for gradients."""
    return 1 << max(0, min(FINEST, (SUMS - 2 * rows.bit_length()) // 2))


def _scale(largest: float, steps: int) -> float:
    """What to multiply with so that the largest is told in so many steps."""
    return min(steps, 2**30) / float(largest) if 0 < largest < math.inf else 1.0


def gathered(gains: list[Vector], trees: list[Trees], d: int) -> NDArray[np.float64]:
    """Share of each column (d,) in all that the questions gain."""
    taken = np.zeros(d)
    for gain, tree in zip(gains, trees, strict=True):
        asks = tree.column >= 0
        taken += np.bincount(tree.column[asks], gain[asks], d)
    shares: Vector = taken / (taken.sum() or 1.0)
    return shares
