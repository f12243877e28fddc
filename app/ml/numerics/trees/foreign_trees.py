"""Trees of other libraries as flat arrays: siblings side by side, and tests of 32-bit numbers as tests of 64-bit ones.

XGBoost and the forests of scikit-learn round the inputs to 32 bits before they compare them. Rounding is monotone, so
that each such test is one of the number as it came, `x <= b`: b is the largest 64-bit number that is rounded to one for
which the test is true. Nothing is rounded when rows are predicted, and no row takes another branch.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.base.errors import ImportUnsupported, InvalidData
from app.base.faults import Fault
from app.ml.contract.algorithm import Labels, Vector
from app.ml.numerics.trees.forest import Trees, sound

BEYOND = 2.0**128
"""The place of the 32-bit number after the largest finite one: half-way to it rounding to infinity begins."""
MOST_TRUTHS = 1 << 28
"""Members of all subsets together, at most: one byte each."""
MAX_LEVELS = 100_000
"""Categories of a column."""


class ForeignTree(NamedTuple):
    """One tree of N nodes in any order, the root first."""

    column: NDArray[np.int32]
    """(N,); -1 at a leaf."""
    threshold: Vector
    strict: NDArray[np.bool_]
    """(N,) true: a row goes left where x < threshold; false: where x <= threshold."""
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    missing_left: NDArray[np.bool_]
    value: Vector
    """(N,) of leaves."""
    subset: NDArray[np.bool_]
    """(N,) the test is whether the level is among some."""
    members_right: NDArray[np.bool_]
    """(N,) those go right, and all others left."""
    begin: Labels
    """(N,) of its levels in `levels`."""
    end: Labels
    levels: Labels
    cover: Vector | None = None
    """(N,) number, or weight, of the training rows of each node; None: not known."""


def last_left(threshold: Vector, strict: NDArray[np.bool_], *, single: bool, zero: float = 0.0) -> Vector:
    """(n,) the largest number that goes left. Raises InvalidData.

    single: numbers are rounded to 32 bits first. zero: numbers up to it, of either sign, are compared as 0.

    >>> last_left(np.array([0.5]), np.array([True]), single=False)[0] == np.nextafter(0.5, 0)
    np.True_
    >>> b = last_left(np.array([0.5]), np.array([True]), single=True)[0]
    >>> bool(np.float32(b) < 0.5), bool(np.float32(np.nextafter(b, 1)) < 0.5)
    (True, False)
    >>> last_left(np.array([-1e-35, 1e-36]), np.zeros(2, np.bool_), single=False, zero=1e-35).tolist()
    [-1.0000000000000001e-35, 1e-35]
    """
    if np.isnan(threshold).any() or np.isneginf(threshold).any():
        raise damaged("A threshold of a split is not a number.")
    below = np.nextafter(threshold, -np.inf)
    last_value = _rounded(threshold, strict) if single else np.where(strict, below, threshold)
    last_value = np.where(
        last_value >= 0, np.maximum(last_value, zero), np.minimum(last_value, np.nextafter(-zero, -np.inf))
    )
    return np.maximum(last_value, np.finfo(np.float64).min)


@np.errstate(over="ignore")  # the number after the last finite one is infinite
def _rounded(threshold: Vector, strict: NDArray[np.bool_]) -> Vector:
    low = np.float32(-np.inf)
    last = threshold.astype(np.float32)
    over = (last > threshold) | (strict & (last == threshold))
    last = np.where(over, np.nextafter(last, low), last)
    middle = (_finite(last) + _finite(np.nextafter(last, -low))) / 2  # exact
    even = last.view(np.uint32) % 2 == 0  # of two that are equally near the even one is taken
    rounded = np.where(even, middle, np.nextafter(middle, -np.inf))
    return np.where(np.isposinf(last), np.inf, rounded)


def _finite(single: NDArray[np.float32]) -> Vector:
    return np.clip(single.astype(np.float64), -BEYOND, BEYOND)


def flattened(
    trees: Sequence[ForeignTree], columns: int, level_counts: Labels, *, single: bool, zero: float = 0.0
) -> Trees:
    """All trees; known: (d,) levels that a column is known to have, at least. Values are (L, 1).

    single, zero: as `last_left` has them.

    A column of categories has one code more than levels, for all others. Raises InvalidData for what is no tree, and
    ImportUnsupported for a column that is a number here and a category there.
    """
    orders = [walk(tree.column >= 0, tree.left, tree.right) for tree in trees]
    sizes = np.array([order.size for order in orders], np.int64)
    starts = np.concatenate([[0], sizes.cumsum()]).astype(np.int64)
    if starts[-1] >= 2**31:
        raise damaged("There are too many nodes.")
    parts = [_ordered(tree, order, start_) for tree, order, start_ in zip(trees, orders, starts, strict=False)]
    column, threshold, strict, left, missing, value, subset, share = (
        np.concatenate([part[i] for part in parts]) for i in range(8)
    )
    if (column >= columns).any():
        raise damaged("A split is of a column that does not exist.")
    is_split = column >= 0
    plain = is_split & ~subset
    levels = _levels(trees, column, subset, plain, level_counts)
    truths = np.zeros(column.size, np.int64)
    truths[subset] = levels[column[subset]]
    ends = truths.cumsum()
    if ends.size and ends[-1] > MOST_TRUTHS:
        raise unsupported("too_many_levels", "/trees", "The splits of categories name too many levels.")
    threshold[plain] = last_left(threshold[plain], strict[plain], single=single, zero=zero)
    threshold[subset] = (ends - truths)[subset]
    threshold[~is_split] = 0.0
    left[~is_split] = np.arange((~is_split).sum())
    if not np.isfinite(value[~is_split]).all():
        raise damaged("The value of a leaf is not finite.")
    return sound(
        Trees(
            starts[:-1].astype(np.int32),
            column.astype(np.int32),
            threshold,
            left.astype(np.int32),
            np.where(is_split, missing, 0).astype(np.int8),
            share,
            levels,
            _members(trees, orders, subset, truths),
            np.ascontiguousarray(value[~is_split][:, None]),
        )
    )


def resized(trees: Trees, levels: Labels) -> Trees:
    """With other numbers of codes (d,) of the columns of categories: the last code stays that of all other levels."""
    subset = (trees.column >= 0) & (trees.levels[trees.column] > 0)
    before, after = trees.levels[trees.column[subset]], levels[trees.column[subset]]
    ends = after.cumsum()
    place = np.arange(ends[-1] if ends.size else 0) - np.repeat(ends - after, after)
    last = place == np.repeat(after, after) - 1
    place = np.where(last, np.repeat(before, after) - 1, np.minimum(place, np.repeat(before, after) - 1))
    members = trees.members[np.repeat(trees.threshold[subset].astype(np.int64), after) + place]
    threshold = trees.threshold.copy()
    threshold[subset] = ends - after
    return sound(trees._replace(levels=levels, members=members, threshold=threshold, left=trees.left.copy()))


def damaged(detail: str) -> InvalidData:
    return InvalidData(f"The file is damaged, or no model. {detail}", faults=[Fault("/trees", detail, "damaged_file")])


def unsupported(what: str, where: str, detail: str) -> ImportUnsupported:
    """what: a stable code; where: a pointer into the file."""
    return ImportUnsupported(faults=[Fault(where, detail, what)])


def walk(is_split: NDArray[np.bool_], left: NDArray[np.integer], right: NDArray[np.integer]) -> Labels:
    """The nodes from the root down, level by level. Raises InvalidData unless each is reached once, if at all."""
    n = is_split.size
    seen = np.zeros(n, np.bool_)
    front = np.zeros(min(n, 1), np.int64)
    seen[front] = True
    levels = [front]
    while (splits := front[is_split[front]]).size:
        front = np.stack([left[splits], right[splits]], axis=1).ravel().astype(np.int64)
        if (front < 0).any() or (front >= n).any() or seen[front].any() or np.unique(front).size < front.size:
            raise damaged("The children of a node lead nowhere, or back.")
        seen[front] = True
        levels.append(front)
    if not n:
        raise damaged("A tree has no nodes.")
    return np.concatenate(levels)


def _ordered(tree: ForeignTree, order: Labels, start: int) -> tuple[NDArray[np.generic], ...]:
    place = np.zeros(tree.column.size, np.int64)
    place[order] = np.arange(order.size)
    left = place[np.where(tree.column[order] >= 0, tree.left[order], 0)] + start
    fields = (array[order] for array in (tree.column, tree.threshold, tree.strict))
    missing = np.where(tree.missing_left[order], 0, 1)
    subset = tree.subset[order] & (tree.column[order] >= 0)
    return *fields, left, missing, tree.value[order], subset, _left_share(tree, order)


def _left_share(tree: ForeignTree, order: Labels) -> Vector:
    """(n,) the part of the training rows of each split that went left, half of none; 0 where nothing is known."""
    is_split = tree.column[order] >= 0
    share = np.zeros(order.size)
    if tree.cover is None:
        return share
    if not (np.isfinite(tree.cover).all() and (tree.cover >= 0).all()):
        raise damaged("The number of training rows of a node is no number.")
    left, right = (tree.cover[child[order[is_split]]] for child in (tree.left, tree.right))
    even = left + right == 0
    share[is_split] = np.where(even, 0.5, left / np.where(even, 1.0, left + right))
    return share


def _levels(
    trees: Sequence[ForeignTree],
    column: Labels,
    subset: NDArray[np.bool_],
    plain: NDArray[np.bool_],
    level_counts: Labels,
) -> Labels:
    """(d,) codes of each column, with one for all other levels; 0 for a number."""
    levels = level_counts.astype(np.int64)
    for tree in trees:
        nodes = np.flatnonzero(tree.subset & (tree.column >= 0) & (tree.end > tree.begin))
        for node in nodes.tolist():
            members = tree.levels[tree.begin[node] : tree.end[node]]
            split_column = tree.column[node]
            if members.size and 0 <= split_column < levels.size:
                levels[split_column] = max(levels[split_column], int(members.max()) + 1)
    if (levels > MAX_LEVELS).any():
        raise unsupported("too_many_levels", "/trees", f"A column has more than {MAX_LEVELS} categories.")
    categorical = levels > 0
    categorical[column[subset]] = True
    if categorical[column[plain]].any():
        raise unsupported("mixed_column", "/trees", "A column is compared as a number and as a category.")
    return np.where(categorical, levels + 1, 0)


def _members(
    trees: Sequence[ForeignTree], orders: Sequence[Labels], subset: NDArray[np.bool_], truths: Labels
) -> NDArray[np.bool_]:
    """Truths, one for each level of each such node: the level goes left."""
    members = np.zeros(int(truths.sum()), np.bool_)
    starts = (truths.cumsum() - truths)[subset]
    nodes = ((tree, node) for tree, order in zip(trees, orders, strict=True) for node in order[_subsets(tree, order)])
    for (tree, node), start, size in zip(nodes, starts, truths[subset], strict=True):
        right = bool(tree.members_right[node])
        members[start : start + size] = right
        members[start + tree.levels[tree.begin[node] : tree.end[node]]] = not right
    return members


def _subsets(tree: ForeignTree, order: Labels) -> NDArray[np.bool_]:
    is_subset: NDArray[np.bool_] = tree.subset[order] & (tree.column[order] >= 0)
    return is_subset
