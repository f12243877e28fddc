"""A decision tree as flat arrays, and the way of rows through it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract import Labels, Matrix, Vector

FEW = 4
"""Up to so many rows are walked one by one: whole-array steps cost more than they save."""


WAYS = ("left", "right", "missing")


class Tree(NamedTuple):
    """N nodes, the root first, every child after its parent.

    A node asks `x[column] <= threshold`, or, where it has a `subset`, whether the level x[column] is a member of it;
    yes goes left, no goes right, a missing value goes its own way. A way of -1 does not exist: the row stops there.
    """

    column: NDArray[np.intp]
    """(N,); -1 at a leaf."""
    threshold: Vector
    """(N,); infinite where the only question is whether the value is known."""
    subset: NDArray[np.intp]
    """(N, 2) where the truths of the node's levels begin and end in `members`; -1 twice for a threshold."""
    members: NDArray[np.bool_]
    """One truth per level of each node that asks for a subset."""
    left: NDArray[np.intp]
    right: NDArray[np.intp]
    missing: NDArray[np.intp]
    value: NDArray[np.float64]
    """(N,) mean target, or (N, k) share of each class, of the training rows that reach the node."""
    weight: Vector
    """(N,) weight of these rows."""
    impurity: Vector
    """(N,)"""
    gain: Vector
    """(N,) what the question takes from impurity × weight."""


def leaves(tree: Tree, x: Matrix) -> Labels:
    """The node (n,) where each row (n, d) ends."""
    if len(x) <= FEW:
        return np.array([path(tree, row)[-1] for row in x], np.intp)
    node = np.zeros(len(x), np.intp)
    going = np.arange(len(x))
    for _ in range(tree.column.size):  # no way is longer, whatever the arrays hold
        going = going[tree.column[node[going]] >= 0]
        if not going.size:
            break
        to = _step(tree, node[going], x[going, tree.column[node[going]]])
        going, to = going[to >= 0], to[to >= 0]
        node[going] = to
    return node


def path(tree: Tree, row: Vector) -> list[int]:
    """The nodes that one row (d,) visits, from the root on."""
    visited = [0]
    while len(visited) <= tree.column.size and (column := tree.column[visited[-1]]) >= 0:
        node, value = visited[-1], row[column]
        if np.isnan(value):
            to = tree.missing[node]
        elif tree.subset[node, 0] >= 0:
            to = (tree.left if tree.members[tree.subset[node, 0] + int(value)] else tree.right)[node]
        else:
            to = (tree.left if value <= tree.threshold[node] else tree.right)[node]
        if to < 0:
            break
        visited.append(int(to))
    return visited


def _step(tree: Tree, node: Labels, value: Vector) -> Labels:
    """The next node (m,) of rows at `node` (m,) that have this value of its column; -1 to stop."""
    known = ~np.isnan(value)
    yes = value <= tree.threshold[node]
    among = np.flatnonzero(known & (tree.subset[node, 0] >= 0))
    yes[among] = tree.members[tree.subset[node[among], 0] + value[among].astype(np.intp)]
    to: Labels = np.where(known, np.where(yes, tree.left[node], tree.right[node]), tree.missing[node])
    return to


def depths(tree: Tree) -> Labels:
    """Questions asked before each node, (N,)."""
    depth = np.zeros(tree.column.size, np.intp)
    reached = np.zeros(1, np.intp)
    while reached.size:
        below = np.concatenate([way[reached] for way in (tree.left, tree.right, tree.missing)])
        before = np.tile(depth[reached], 3)
        reached = below[below >= 0]
        depth[reached] = before[below >= 0] + 1
    return depth


def importances(tree: Tree) -> dict[int, float]:
    """Share of each column that is asked about in all that the questions took from the impurity, largest first."""
    asks = tree.column >= 0
    columns, group = np.unique(tree.column[asks], return_inverse=True)
    taken = np.bincount(group, tree.gain[asks], len(columns))
    shares = taken / (taken.sum() or 1.0)
    return {int(columns[i]): float(shares[i]) for i in np.argsort(-shares, kind="stable")}
