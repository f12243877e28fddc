"""Trees that each lower a loss a little further, on the same binned columns and scratch memory."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract import Vector
from app.ml.numerics.binning import Binned
from app.ml.numerics.kernels.boosting import CELLS, boost, pack
from app.ml.numerics.trees import Trees

CURVATURES, MANY = 1024, 2**20
"""Steps that a curvature is told in, where they differ from row to row; a sixteenth of them for more rows than this."""
LEAST_CURVATURE = 1e-3
"""Of a leaf: below it the step G/H would be taken on nothing."""
POOL = 2**26
"""Bytes, at most, to keep histograms in: with more, both children of a split are counted."""


class Limits(NamedTuple):
    """When a leaf is left alone, and how far a step goes."""

    max_leaves: int
    max_depth: int
    min_samples_leaf: float
    l2: float
    rate: float


class Booster:
    """Grows trees for gradients of n rows and d columns. Memory: 2 bytes a cell, 24 a row, and the histograms."""

    def __init__(self, table: Binned, limits: Limits) -> None:
        d, n = table.codes.shape
        self._table, self._limits = table, limits
        words = np.zeros((n, -(-d // 8)), np.uint64)
        words.view(np.uint8)[:, :d] = table.codes.T
        cells = words.shape[1] * 8 * CELLS
        self._words = words
        self._pool = np.empty((limits.max_leaves + 1 if 8 * limits.max_leaves * cells <= POOL else 2, cells), np.int64)
        self._rows, self._spare, self._packed = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int64)
        nodes = 2 * limits.max_leaves
        kinds = np.int32, np.float64, np.int32, np.int8, np.float64, np.float64, np.float64
        self._scratch: list[NDArray[Any]] = [np.empty(nodes, kind) for kind in kinds]

    def grow(self, gradient: Vector, curvature: Vector, raw: Vector, *, constant: bool) -> tuple[Trees, Vector]:
        """One tree of Newton steps, and what each of its questions gains; adds its answers to `raw` (n,).

        constant: all curvatures are the same, and need no more than to be counted.
        """
        n, limits = gradient.size, self._limits
        steps = 1 if constant else CURVATURES // (16 if n > MANY else 1)
        bits = (n * steps).bit_length() + 1
        gradients = _scale(gradient, 2 ** (61 - bits) // n)
        curvatures = _scale(curvature, steps)
        pack(gradient, curvature, gradients, curvatures, bits, self._packed)
        self._rows[:] = np.arange(n)
        codes, bins, start, low, high, levels = self._table
        size = boost(
            *(self._words, codes, bins, start, low, high, self._rows, self._spare, self._packed, self._pool),
            *(gradient, curvature, bits, gradients, curvatures, limits.l2, limits.min_samples_leaf, LEAST_CURVATURE),
            *(limits.rate, limits.max_leaves, limits.max_depth, raw, *self._scratch),
        )
        column, threshold, left, missing, share, value, gain = (array[:size].copy() for array in self._scratch)
        nothing = np.zeros(0, np.bool_)
        root = np.zeros(1, np.int32)
        tree = Trees(root, column, threshold, left, missing, share, levels.astype(np.int64), nothing, value[:, None])
        return tree, gain


def _scale(values: Vector, steps: int) -> float:
    """What to multiply with so that the largest is told in so many steps."""
    largest = float(np.abs(values).max())
    return min(steps, 2**30) / largest if largest > 0 and math.isfinite(largest) else 1.0


def gathered(gains: list[Vector], trees: list[Trees], d: int) -> NDArray[np.float64]:
    """Share of each column (d,) in all that the questions gain."""
    taken = np.zeros(d)
    for gain, tree in zip(gains, trees, strict=True):
        asks = tree.column >= 0
        taken += np.bincount(tree.column[asks], gain[asks], d)
    shares: Vector = taken / (taken.sum() or 1.0)
    return shares
