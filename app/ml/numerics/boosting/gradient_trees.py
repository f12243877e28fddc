"""Trees that each lower a loss a little further, on the same binned columns and scratch memory.

A row takes 8⌈d/8⌉ bytes for its codes, a tenth of that or POOL in all for the histograms, half of it for those of
more than two classes, 4¼ for its place among the leaves, 4 for its gradient, 8 for its sum of trees, or 4 for each of
classes (two have one); one more if some rows are held out. So of many rows it is at most twice d, the bytes of a row's
codes, for numbers from 22 columns on, for two classes from 15 on, and for k > 2 classes where 2 d is at least
8.4 ⌈d/8⌉ + 8¼ + 4 k: 4 of 30 columns, 13 of 64.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels, Vector
from app.ml.contract.threads import count_threads, run_at_once
from app.ml.numerics.boosting.compiled.grow import COUNTED, FEWER, KEPT, LEAF, PLACE, STAGE, WAITING, boost
from app.ml.numerics.boosting.compiled.rows import (
    add_values,
    join_sections,
    leaf_sums,
    leaf_values,
    part_sections,
    tally_rows,
)
from app.ml.numerics.boosting.compiled.splits import CELLS, LEFT
from app.ml.numerics.boosting.ordered_leaves import ordered_in_tree
from app.ml.numerics.boosting.step_bounds import NO_BOUNDS, StepBounds
from app.ml.numerics.trees.binning import Binned
from app.ml.numerics.trees.forest import Trees

SUMS, FINEST = 61, 20
"""Bits for the sums of gradients and of curvatures over all rows; and, at most, for one row's curvature."""
LEAST_CURVATURE = 1e-3
"""Least curvature of a leaf: below it the step G/H would rest on nothing, and this value takes its place."""
BATCH, NUMBERS = 2048, 8192
"""Rows of one batch, and numbers that are computed of them, at most: they take little memory."""
MIN_PARALLEL_ROWS = 2**16
"""Rows from which on they are counted and parted on all free cores."""
PARTS = 16
"""Turns in which all rows are parted: more take less memory to part them in, and move more of them twice."""
Sums: TypeAlias = Vector | NDArray[np.float32]
"""(n,) of the trees so far: of classes, whose logarithms are not large, four bytes are enough."""
NO_CURVATURES: NDArray[np.float32] = np.zeros(0, np.float32)
LeafValue: TypeAlias = Callable[[NDArray[np.int32]], float]
"""The best value of a leaf of these rows, where it is no Newton step."""
POOL = 2**19
"""Bytes to keep histograms in, or a tenth of what the codes take; half of it beside sums of several classes. Where
that is few, more rows are counted again.
"""


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
    """Added to `l2` below a split of categories."""


class Slopes(NamedTuple):
    """Gradient and curvature of n rows, whatever they weigh."""

    gradients: NDArray[np.float32]
    """(n,) in `unit`; those of classes, p or p - 1, give the curvature p (1 - p); that of numbers is 1."""
    numbers: bool
    unit: float
    """Factor that brings the gradients near 1, so that four bytes are enough."""
    weights: Vector
    """(n,), to be counted in units of `weight`; or none, of rows that all weigh as much."""
    weight: float
    largest: tuple[float, float]
    """Gradient and curvature, in these units."""
    curvatures: NDArray[np.float32] = NO_CURVATURES
    """(n,) of losses whose curvature does not follow from the gradient; none of others."""
    curvature_unit: float = 1.0
    """Factor of the curvatures."""

    @property
    def arguments(self) -> tuple[Any, Any, Any, Any, Any]:
        """Arguments of kernels, as `slope` has them."""
        return self.gradients, self.weights, 1 / self.weight, self.numbers, self.curvatures


class Booster:
    """Grows trees for gradients of n rows and d columns."""

    def __init__(
        self,
        table: Binned,
        train_mask: NDArray[np.bool_],
        limits: Limits,
        sums: int,
        bounds: StepBounds = NO_BOUNDS,
    ) -> None:
        """table: binned by row. train_mask: (n,) the rows that trees grow from. sums: of trees, of each row. bounds: of
        steps and splits.
        """
        n, width = table.codes.shape
        self._table, self._train_mask, self._limits = table, train_mask, limits
        self._bag, self._trees = train_mask, 0
        self._bounds, self._halves = bounds, 1 + bounds.twofold
        self._rows, self._spare = np.empty(n, np.int32), np.empty(-(-n // PARTS), np.int32)
        room = max(POOL, table.codes.nbytes // 10) // min(sums, 2) // (8 * width * CELLS)
        self._pool = np.empty((min(limits.max_leaves + 1, max(2, room)), self._halves * width * CELLS), np.int64)
        nodes = 2 * limits.max_leaves
        kinds = np.int32, np.float64, np.int32, np.int8, np.float64, np.float64, np.float64
        self._scratch: list[NDArray[Any]] = [np.empty(nodes, kind) for kind in kinds]
        self._sides = np.empty((nodes, max(CELLS, int(table.bins.max(initial=0)) + 1)), np.uint8)
        self._leaf_rows = np.empty((limits.max_leaves, 3), np.int64)
        self._bytes = np.stack([table.further, table.wide])
        self._progress, self._owner = np.zeros(10, np.int64), np.empty(len(self._pool), np.int64)
        self._leaf_states, self._leaf_numbers = (
            np.empty((limits.max_leaves, 8), np.int64),
            np.empty((limits.max_leaves, 6)),
        )

    def next_bag(self, numbers: Labels | None) -> NDArray[np.bool_]:
        """(n,) the rows that the next tree grows from. numbers: (n,) names of the rows; None: 0 … n-1."""
        self._trees += 1
        self._bag = self._bounds.bag(self._trees, numbers, self._train_mask)
        return self._bag

    def grow(self, slopes: Slopes, raw: Sums, leaf_value: LeafValue | None = None) -> tuple[Trees, Vector]:
        """One tree, and the gain of each of its splits; adds its values to `raw` (n,) of the rows it grew from.

        leaf_value: instead of a Newton step.
        """
        n, limits = len(slopes.gradients), self._limits
        twofold = self._bounds.twofold
        steps = 1 if twofold or (slopes.numbers and not slopes.weights.size) else _steps(n)
        bits = (n * steps).bit_length() + 1
        curvature_steps = 2**SUMS // n if twofold else steps
        steep, curved = (
            _scale(slopes.largest[0], 2 ** (SUMS - bits) // n),
            _scale(slopes.largest[1], curvature_steps),
        )
        bent, least_curvature = slopes.curvature_unit / slopes.weight, LEAST_CURVATURE / slopes.weight
        codes, bins, start, low, high, levels = self._table
        threads = count_threads() if n >= MIN_PARALLEL_ROWS else 1
        most = n if threads == 1 else 2 * len(self._spare)
        self._progress[:] = 0
        arguments = [
            *(codes.view(np.uint64), codes, self._bytes, bins, start, low, high, levels, self._bag),
            *(self._rows, self._spare, *slopes.arguments, self._pool),
            *(bits, steep, curved, limits.l2 * bent, limits.min_samples_leaf, least_curvature),
            *(limits.category_smoothing * bent, limits.category_l2 * bent),
            *(limits.category_smoothing, limits.max_leaves, limits.max_depth, self._leaf_rows),
            *(*self._scratch, self._sides, self._progress, most, self._leaf_states, self._leaf_numbers, self._owner),
            *self._bounds.arguments(slopes, len(bins), self._trees, self._weight_of_bag(slopes)),
        ]
        while (size := boost(*arguments)) == WAITING:
            self._count_at_once(threads, (*slopes.arguments, bits, steep, curved))
        column, threshold, left, missing, share, value, gain = (array[:size].copy() for array in self._scratch)
        leaves, penalties = self._leaf_rows[: size // 2 + 1], self._leaf_numbers[: size // 2 + 1, 1]
        rate = limits.rate * slopes.curvature_unit / slopes.unit
        if any(self._bounds.directions):  # a row of several leaves of a tree rounds more than once, and out of order
            unseen = (column >= 0) & (missing < 0)
            missing[unseen] = share[unseen] < 0.5
        members = self._members(column, threshold)
        root = np.zeros(1, np.int32)
        tree = Trees(root, column, threshold, left, missing, share, levels.astype(np.int64), members, value[:, None])
        settled = leaf_value is not None or self._bounds.apply
        if settled:
            value[leaves[:, 0]] = limits.rate * self._leaf_values(slopes, leaf_value, leaves, penalties, tree)

        def settle(some: slice) -> None:
            leaf_rows = leaves[some].copy()
            if not settled:
                leaf_values(
                    self._rows, leaf_rows, penalties[some].copy(), *slopes.arguments, rate, least_curvature, value
                )
            add_values(self._rows, leaf_rows, value, raw)

        run_at_once([partial(settle, slice(first, None, threads)) for first in range(threads)])
        return tree, gain / slopes.unit / slopes.unit * slopes.curvature_unit * slopes.weight

    def _weight_of_bag(self, slopes: Slopes) -> float:
        """Sum of the weights of the rows of the tree, where a bound needs it."""
        if not self._bounds.min_decrease:
            return 0.0
        return float(slopes.weights[self._bag].sum() if slopes.weights.size else slopes.weight * self._bag.sum())

    def _leaf_values(
        self,
        slopes: Slopes,
        leaf_value: LeafValue | None,
        leaves: NDArray[np.int64],
        penalties: Vector,
        tree: Trees,
    ) -> Vector:
        """(L,) the values of leaves, before they are shrunk."""
        sums = np.empty((len(leaves), 2))
        leaf_sums(self._rows, leaves.copy(), *slopes.arguments, sums)
        curvatures = np.maximum(sums[:, 1], LEAST_CURVATURE / slopes.weight) + penalties
        if leaf_value is None:
            values = self._bounds.steps(sums[:, 0], curvatures, slopes)
        else:
            values = np.array([leaf_value(self._rows[begin:end]) for _, begin, end in leaves])
        if any(self._bounds.directions):
            values = ordered_in_tree(tree, leaves[:, 0], values, curvatures, np.array(self._bounds.directions))
        return self._bounds.clipped(values)

    def _count_at_once(self, threads: int, slopes: tuple[Any, ...]) -> None:
        """Count all rows, or part those of a leaf, on so many cores: whole numbers add up to the same in any order."""
        table, progress, words = self._table, self._progress, self._table.codes.view(np.uint64)
        histograms, place = np.empty((threads, self._pool.shape[1]), np.int64), progress[PLACE]
        node, begin, end = self._leaf_rows[progress[LEAF]]
        rows = self._rows[begin:end]
        if progress[STAGE] == COUNTED:
            edges = [len(rows) * number // threads for number in range(threads + 1)]
            parts = zip(edges[:-1], edges[1:], histograms, strict=True)
            run_at_once(
                [
                    partial(tally_rows, *[words, rows[first:last], *slopes, histogram])
                    for first, last, histogram in parts
                ]
            )
        else:
            j, size = self._leaf_states[progress[LEAF], 2], len(self._spare)
            stays, spares = np.empty(-(-len(rows) // size), np.int64), np.empty((threads, size), np.int32)
            split = rows, words, table.codes, j, *self._bytes[:, j], self._sides[node]
            calls = [
                partial(part_sections, *[*split, spare, progress[FEWER], *slopes, first, threads, stays, histogram])
                for first, (spare, histogram) in enumerate(zip(spares, histograms, strict=True))
            ]
            run_at_once(calls)
            progress[KEPT] = join_sections(rows, stays, self._spare)
        np.add.reduce(histograms, axis=0, out=self._pool[place])

    def _members(self, column: NDArray[np.int32], threshold: Vector) -> NDArray[np.bool_]:
        """The members of all subsets of splits; where each begins goes into `threshold`."""
        subsets = np.flatnonzero((column >= 0) & (self._table.levels[column] > 0))
        sizes = self._table.levels[column[subsets]]
        parts = [self._sides[node, :size] == LEFT for node, size in zip(subsets, sizes, strict=True)]
        threshold[subsets] = np.cumsum(sizes) - sizes
        return np.concatenate([np.zeros(0, np.bool_), *parts])


def _steps(rows: int) -> int:
    """Number of steps of a curvature, where they differ: it leaves the same number for gradients."""
    return 1 << max(0, min(FINEST, (SUMS - 2 * rows.bit_length()) // 2))


def _scale(largest: float, steps: int) -> float:
    """Factor that makes the largest so many steps."""
    return min(steps, 2**30) / float(largest) if 0 < largest < math.inf else 1.0


def gathered(gains: list[Vector], trees: list[Trees], d: int) -> NDArray[np.float64]:
    """Share of each column (d,) in the gain of all splits."""
    taken = np.zeros(d)
    for gain, tree in zip(gains, trees, strict=True):
        is_split = tree.column >= 0
        taken += np.bincount(tree.column[is_split], gain[is_split], d)
    shares: Vector = taken / (taken.sum() or 1.0)
    return shares
