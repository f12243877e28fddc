"""Trees grown from binned or ranked columns, as many as wanted on the same scratch memory."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract import Data, Labels, Task, Vector
from app.ml.numerics.binning import Binned
from app.ml.numerics.kernels.growth import grow, grow_ranked
from app.ml.numerics.kernels.search import BOTH, BRANCH, SIDE
from app.ml.numerics.trees import Trees

DEEPEST = 2**30
"""Depth and leaves without a limit."""


class Rules(NamedTuple):
    """When a node is left alone, and what it may ask. Rows count by their weight."""

    criterion: int
    max_depth: int = DEEPEST
    max_leaves: int = 0
    """0: no limit, and the tree grows depth first; else the question that gains most comes first."""
    min_samples_split: float = 2.0
    min_samples_leaf: float = 1.0
    min_gain: float = 0.0
    columns: int = DEEPEST
    """How many are drawn for each question."""
    draws_subsets: bool = False
    """Whether subsets of categories are drawn as well, rather than searched."""
    missing_branch: bool | NDArray[np.bool_] = True
    """Whether missing values may have a way of their own; (d,) for each column."""
    missing_side: bool = False
    """Whether those that may not go to the side where they gain more, and not both ways. Of binned columns."""


class Grown(NamedTuple):
    """One tree of N nodes, the root first. As `Trees`, but `left` is -1 at a leaf; and what growing knew of it."""

    column: NDArray[np.int32]
    threshold: Vector
    left: NDArray[np.int32]
    missing: NDArray[np.int8]
    value: NDArray[np.float64]
    """(N, k) shares of the classes, or (N, 1) mean, of the training rows that reach the node."""
    weight: Vector
    """(N,) of these rows."""
    impurity: Vector
    """(N,)"""
    gain: Vector
    """(N,) what the question takes from impurity × weight."""
    members: NDArray[np.bool_]


class Grower:
    """Grows trees for the target of `data` from codes of its columns.

    order: (d, n) rows of each column in order of its codes, if they are ranks; it is used up by the first tree.
    """

    def __init__(self, data: Data, table: Binned, order: NDArray[np.int32] | None = None) -> None:
        self._table = table
        self._order = order
        classes = data.targets.shape[1] if data.task is Task.CLASSIFICATION else 0
        self._kinds = classes or 2
        self._kind = data.codes.astype(np.int32) if classes else np.zeros(len(data.x), np.int32)
        self._y = data.y
        self._grow = grow if table.codes.dtype == np.uint8 else grow_ranked
        self._values = classes or 1
        self._scratch: tuple[NDArray[Any], ...] = ()

    def grow(self, weights: Vector, rules: Rules, seed: int = 0) -> Grown:
        """A tree of the rows whose weight (n,) is not zero."""
        order = self._order
        if order is None:
            order = np.flatnonzero(weights).astype(np.int32)[None]
        nodes = 2 * self._leaves(order.shape[1], weights, rules)
        if not self._scratch or self._scratch[0].size < nodes:
            kinds = (np.int32, np.float64, np.int32, np.int8)
            more = np.empty((nodes, self._values)), *np.empty((3, nodes))
            self._scratch = *(np.empty(nodes, kind) for kind in kinds), *more
        codes, bins, start, low, high, levels = self._table
        size, members = self._grow(
            *(codes, bins, start, low, high, levels, order, self._kind, weights, self._y),
            *(rules.criterion, self._kinds, rules.max_depth, rules.max_leaves, rules.min_samples_split),
            *(rules.min_samples_leaf, rules.min_gain, rules.columns, rules.draws_subsets),
            *(_ways(rules, bins.size), np.uint64(seed), *self._scratch),
        )
        fields = [array[:size].copy() for array in self._scratch]
        return Grown._make([*fields, members.copy()])

    def _leaves(self, rows: int, weights: Vector, rules: Rules) -> int:
        """The most there can be."""
        heavy = min(rows, math.floor(float(weights.sum()) / rules.min_samples_leaf * (1 + 1e-6)) + 1)
        limited = min(heavy, rules.max_leaves or heavy)
        return max(1, limited if rules.max_depth > 30 else min(limited, 3**rules.max_depth))


def _ways(rules: Rules, d: int) -> NDArray[np.int8]:
    """(d,) where each column may send missing values."""
    return np.where(np.broadcast_to(rules.missing_branch, d), BRANCH, SIDE if rules.missing_side else BOTH).astype(
        np.int8
    )


def planted(tree: Grown, levels: Labels, answer: NDArray[np.float64], told: Labels | None = None) -> Trees:
    """One tree ready to be asked. told: (N,) the row of `answer` that each leaf says; absent: one row a node."""
    own = np.arange(tree.column.size) if told is None else told
    return Trees(
        root=np.zeros(1, np.int32),
        column=tree.column,
        threshold=tree.threshold,
        left=np.where(tree.column < 0, own, tree.left).astype(np.int32),
        missing=tree.missing,
        share=_shares(tree),
        levels=levels.astype(np.int64),
        members=tree.members,
        answer=answer,
    )


def together(parts: Sequence[Trees]) -> Trees:
    """The trees of all, one after the other. If they share one table of answers, they go on sharing it."""
    shared = all(part.answer is parts[0].answer for part in parts)
    nodes = _starts([part.column.size for part in parts])
    truths = _starts([part.members.size for part in parts])
    rows = _starts([0 if shared else len(part.answer) for part in parts])
    left: list[NDArray[np.int32]] = []
    threshold: list[Vector] = []
    for part, node, truth, row in zip(parts, nodes, truths, rows, strict=True):
        left.append((part.left + np.where(part.column < 0, row, node)).astype(np.int32))
        subset = (part.column >= 0) & (part.levels[part.column] > 0)
        threshold.append(part.threshold + np.where(subset, truth, 0))
    whole = {name: np.concatenate([getattr(part, name) for part in parts]) for name in ("column", "missing", "share")}
    return parts[0]._replace(
        **whole,
        root=nodes.astype(np.int32),
        left=np.concatenate(left),
        threshold=np.concatenate(threshold),
        members=np.concatenate([part.members for part in parts]),
        answer=parts[0].answer if shared else np.concatenate([part.answer for part in parts]),
    )


def _starts(sizes: Sequence[int]) -> Labels:
    starts: Labels = np.cumsum(sizes) - np.array(sizes)
    return starts


def _shares(tree: Grown) -> Vector:
    """Of the rows with a value, those that went left."""
    left = np.where(tree.column >= 0, tree.left, 0)
    right = np.where((tree.column >= 0) & np.isfinite(tree.threshold), left + 1, 0)
    lefts, rights = tree.weight[left], np.where(right > 0, tree.weight[right], 0.0)
    shares: Vector = lefts / (lefts + rights)
    return shares
