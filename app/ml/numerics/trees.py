"""Trees as flat arrays, and the way of rows through them.

An answer depends on the row alone, to the last bit: every row adds the trees' answers in the same order, whatever
rows are with it. Rows go block by block, so that a block and a tree stay near the processor.
"""

import weakref
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.errors import CorruptModel
from app.ml.contract import Matrix, Vector
from app.ml.numerics.kernels.traversal import add_answers


class Trees(NamedTuple):
    """T trees of N nodes in all, every child after its parent.

    A node asks `x[column] <= threshold`, or, of a column of categories, whether the level x[column] is among the
    node's members. Yes goes to `left`, no to the node after it. A missing value goes to the node `missing` places
    after `left`; where that is -1 it goes both ways, and the answers count by `share`.
    """

    root: NDArray[np.int32]
    """(T,)"""
    column: NDArray[np.int32]
    """(N,); -1 at a leaf."""
    threshold: Vector
    """(N,); infinite to ask only whether the value is known. Of categories: where the node's truths begin in
    `members`."""
    left: NDArray[np.int32]
    """(N,); at a leaf: its row in `answer`."""
    missing: NDArray[np.int8]
    """(N,)"""
    share: Vector
    """(N,) share of the training rows with a value that went left."""
    levels: NDArray[np.int64]
    """(d,) categories of each column; 0 for a number."""
    members: NDArray[np.bool_]
    """One truth per level of each node that asks for a subset."""
    answer: NDArray[np.float64]
    """(L, k)"""


def total(trees: Trees, x: Matrix) -> Matrix:
    """For each row (n, d) the sum (n, k) of all trees' answers. Raises CorruptModel for arrays that are no trees."""
    out = np.zeros((len(x), trees.answer.shape[1]))
    add_answers(x, *sound(trees), out)
    return out


def each(trees: Trees, x: Matrix) -> Matrix:
    """For each row (n, d) what every tree answers (n, T), the first of its k numbers."""
    out = np.zeros((len(x), trees.root.size))
    for t in range(trees.root.size):
        out[:, t] = total(trees._replace(root=trees.root[t : t + 1]), x)[:, 0]
    return out


_known: dict[int, "weakref.ref[NDArray[np.int32]]"] = {}
"""The `left` of trees that were found to be sound, by identity."""


def sound(trees: Trees) -> Trees:
    """The same, once it is certain that no way leads out of the arrays or back: compiled code does not look."""
    kept = _known.get(id(trees.left))
    if kept is None or kept() is not trees.left:
        if not _is_sound(trees):
            raise CorruptModel("The stored trees lead nowhere.")
        key = id(trees.left)
        _known[key] = weakref.ref(trees.left, lambda _: _known.pop(key, None))
    return trees


def _is_sound(trees: Trees) -> bool:
    column, left, n = trees.column, trees.left.astype(np.int64), trees.column.size
    asks = column >= 0
    rows = (trees.threshold, left, trees.missing, trees.share)
    if any(array.shape != (n,) for array in rows) or trees.answer.ndim != 2 or trees.levels.ndim != 1:
        return False
    if not ((trees.root >= 0) & (trees.root < n)).all() or (column >= trees.levels.size).any():
        return False
    if not ((left >= 0) & (left < np.where(asks, n, len(trees.answer)))).all():
        return False
    levels = np.where(asks, trees.levels[column] if trees.levels.size else 0, 0)
    only_known = np.isinf(trees.threshold)
    farthest = left + np.maximum(trees.missing, np.where(only_known, 0, 1))
    forward = (left > np.arange(n)) & (trees.missing >= -1) & (farthest < n)
    truths = np.where((levels > 0) & ~only_known, trees.threshold, 0.0)
    within = (truths >= 0) & (truths + np.where(only_known, 0, levels) <= trees.members.size)
    return bool((levels >= 0).all() and (forward & within)[asks].all())
