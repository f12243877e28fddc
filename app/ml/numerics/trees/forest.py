"""Forests of trees as flat arrays, and the traversal of rows.

A prediction depends on the row alone, to the last bit: every row adds the trees' values in the same order, whatever
rows are with it, and whichever of two paths it takes. Rows go block by block, so that a block and a tree stay near the
processor; where all splits are of numbers, rows go side by side, or a row down several trees.
"""

import weakref
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from app.base.errors import CorruptModel
from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.trees.compiled.numeric_traversal import SIGN, add_plain, add_plain_few
from app.ml.numerics.trees.compiled.traversal import add_values

MIN_INTERLEAVED_ROWS = 6
"""Rows for which eight side by side cost less than each by itself, in eight trees at a time."""
MAX_UNPACKED_ROWS = 2000
"""Rows that pass one tree in less time than it takes to pack it."""
PREDICTIONS = 2**20
"""Limit on the predictions of single trees in memory at a time."""
LEAST_BLOCK, MOST_CELLS = 1024, 2**20
"""Rows that stay near the processor, and numbers, at most, of those that go together."""


WORDS = 2
"""Words of a packed node."""
Nodes: TypeAlias = NDArray[np.uint64]


class Trees(NamedTuple):
    """T trees of N nodes in all, every child after its parent.

    The test of a node is `x[column] <= threshold`, or, of a column of categories, whether the level x[column] is among
    the node's members. If it is true the row goes to `left`, else to the node after it. A missing value goes to the
    node `missing` places after `left`; where that is -1 it goes to both children, and the values count by `share`.
    """

    root: NDArray[np.int32]
    """(T,)"""
    column: NDArray[np.int32]
    """(N,); -1 at a leaf."""
    threshold: Vector
    """(N,); infinite if the test is whether the value is known. Of categories: where the node's truths begin in
    `members`."""
    left: NDArray[np.int32]
    """(N,); at a leaf: its row in `values`."""
    missing: NDArray[np.int8]
    """(N,)"""
    share: Vector
    """(N,) share of the training rows with a value that went left."""
    levels: NDArray[np.int64]
    """(d,) categories of each column; 0 for a number."""
    members: NDArray[np.bool_]
    """One truth per level of each node whose test is a subset."""
    values: NDArray[np.float64]
    """(L, k) values of the leaves."""

    @property
    def beside(self) -> int:
        """Bytes of its nodes once more, packed."""
        return WORDS * 8 * self.column.size

    def demand_sound(self) -> None:
        """Raises CorruptModel for arrays that are no trees, as stored bytes could hold them."""
        sound(self)


def total(trees: Trees, x: Matrix) -> Matrix:
    """For each row (n, d) the sum (n, k) of all trees' values. Raises CorruptModel for arrays that are no trees."""
    return _predicted(trees, x, by_tree=False)


def total_of_grown(tree: Trees, x: Matrix) -> Matrix:
    """`total` of a tree that has just been grown: it is sound, and few rows pass it sooner than it could be packed."""
    if len(x) > MAX_UNPACKED_ROWS:
        return total(tree, x)
    return _one_by_one(tree, np.ascontiguousarray(x, np.float64), by_tree=False)


def each(trees: Trees, x: Matrix) -> Matrix:
    """For each row (n, d) the value of every tree (n, T), the first of its k numbers."""
    return _predicted(trees, x, by_tree=True)


def stages(trees: Trees, x: Matrix, size: int = 1) -> Matrix:
    """(T / size, n, k) the sums of so many trees, those that one round added, for every row (n, d)."""
    singles = [total(trees._replace(root=trees.root[t : t + 1]), x) for t in range(trees.root.size)]
    sums: Matrix = np.array(singles).reshape(-1, size, len(x), trees.values.shape[1]).sum(axis=1)
    return sums


def _predicted(trees: Trees, x: Matrix, *, by_tree: bool) -> Matrix:
    nodes = _packed(trees)
    if x.shape[1] != trees.levels.size:
        raise CorruptModel("The stored trees are for other columns.")
    x = np.ascontiguousarray(x, np.float64)
    return _one_by_one(trees, x, by_tree=by_tree) if nodes is _NONE else _side_by_side(trees, nodes, x, by_tree=by_tree)


def _one_by_one(trees: Trees, x: Matrix, *, by_tree: bool) -> Matrix:
    if by_tree:
        singles = (trees._replace(root=trees.root[t : t + 1]) for t in range(trees.root.size))
        return np.stack([_one_by_one(single, x, by_tree=False)[:, 0] for single in singles], axis=1)
    out = np.zeros((len(x), trees.values.shape[1]))
    add_values.lean(x, *trees, out)
    return out


def _side_by_side(trees: Trees, nodes: Nodes, x: Matrix, *, by_tree: bool) -> Matrix:
    """A tree that is fetched for a block of rows is used more often than it has nodes."""
    root, values, n = trees.root, trees.values, len(x)
    out = np.empty((n, root.size if by_tree else values.shape[1]))
    if n < MIN_INTERLEAVED_ROWS:
        gaps = add_plain_few.lean(x, root, nodes, values, by_tree, out)
    else:
        block = min(max(LEAST_BLOCK, 2 * len(nodes) // max(1, root.size)), MOST_CELLS // max(1, x.shape[1]) + 1)
        gaps = add_plain.lean(x, root, nodes, values, block, by_tree, out)
    if gaps:
        rows = np.isnan(x).any(axis=1)
        out[rows] = _one_by_one(trees, x[rows], by_tree=by_tree)
    return out


_KINDS = (np.int32, np.int32, np.float64, np.int32, np.int8, np.float64, np.int64, np.bool_, np.float64)
_NONE: Nodes = np.zeros((0, WORDS), np.uint64)
"""Packed nodes of trees with splits of categories, which are not packed."""


class _Known:
    """Trees that were found to be sound."""

    __slots__ = ("left", "nodes")

    def __init__(self, left: NDArray[np.int32]) -> None:
        key = id(left)
        self.left = weakref.ref(left, lambda _: _known.pop(key, None))
        self.nodes: Nodes | None = None
        """Packed, once rows have been predicted."""


_known: dict[int, _Known] = {}
"""By the identity of `left`."""


def _packed(trees: Trees) -> Nodes:
    """A node as two words (N, 2) beside each other, where all splits are of numbers.

    The threshold's key, and column and left child; at a leaf the row of `values`, and a column of which every row's
    key is least, and itself. Raises CorruptModel.
    """
    cached = _looked_at(trees)
    if cached.nodes is None:
        cached.nodes = _pack(trees)
    return cached.nodes


def _pack(trees: Trees) -> Nodes:
    column, d = trees.column, trees.levels.size
    is_split = column >= 0
    if trees.levels[column[is_split]].any():
        return _NONE
    bits = (trees.threshold + 0.0).view(np.uint64)
    keys = np.where(np.signbit(trees.threshold + 0.0), ~bits, bits | SIGN)
    keys[~np.isfinite(trees.threshold)] = np.iinfo(np.uint64).max  # no key is greater, not even that of NaN
    left = trees.left.astype(np.uint64)
    tests = np.where(is_split, column, d).astype(np.uint64) << np.uint64(32)
    return np.stack(
        [np.where(is_split, keys, left), tests | np.where(is_split, left, np.arange(left.size, dtype=np.uint64))], 1
    )


def sound(trees: Trees) -> Trees:
    """The same trees, once it is certain that they are well formed, and no branch leads out of them or back.

    Compiled code does not look.
    """
    _looked_at(trees)
    return trees


def _looked_at(trees: Trees) -> _Known:
    left = trees.left
    cached = _known.get(id(left))
    if cached is None or cached.left() is not left:
        if not _is_sound(trees):
            raise CorruptModel("The stored trees lead nowhere.")
        cached = _known[id(left)] = _Known(left)
    return cached


def _is_of_kind(array: object, kind: type) -> bool:
    return isinstance(array, np.ndarray) and array.dtype == kind and array.flags.c_contiguous


def _is_sound(trees: Trees) -> bool:
    arrays: tuple[NDArray[Any], ...] = trees
    if not all(map(_is_of_kind, arrays, _KINDS)):
        return False
    column, left, n = trees.column, trees.left.astype(np.int64), trees.column.size
    is_split = column >= 0
    rows = (trees.threshold, left, trees.missing, trees.share)
    if any(array.shape != (n,) for array in rows) or trees.values.ndim != 2 or trees.levels.ndim != 1:
        return False
    is_column = (column >= -1) & (column < trees.levels.size)
    if not is_column.all() or not ((trees.root >= 0) & (trees.root < n)).all():
        return False
    if not ((left >= 0) & (left < np.where(is_split, n, len(trees.values)))).all():
        return False
    levels = np.where(is_split, trees.levels[column] if trees.levels.size else 0, 0)
    only_known = np.isposinf(trees.threshold)
    farthest = left + np.maximum(trees.missing, np.where(only_known, 0, 1))
    forward = (left > np.arange(n)) & (trees.missing >= -1) & (farthest < n)
    truths = np.where((levels > 0) & ~only_known, trees.threshold, 0.0)
    within = (truths >= 0) & (truths + np.where(only_known, 0, levels) <= trees.members.size)
    return bool((levels >= 0).all() and (forward & within)[is_split].all())


def spread(trees: Trees, x: Matrix, confidence: float) -> Matrix:
    """Percentiles of the single trees' predictions (n, 2), widened to hold their mean; of numbers."""
    step = max(1, PREDICTIONS // trees.root.size)
    return np.concatenate([_spread(trees, x[i : i + step], confidence) for i in range(0, max(1, len(x)), step)])


def _spread(trees: Trees, x: Matrix, confidence: float) -> Matrix:
    predictions = each(trees, x)
    outside = (1 - confidence) / 2
    low, high = np.quantile(predictions, [outside, 1 - outside], axis=1)
    mean = predictions.mean(axis=1)
    return np.stack([np.minimum(low, mean), np.maximum(high, mean)], axis=1)
