"""One tree: its branches, its depth, the importance of its columns, and the path of a row."""

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels, Vector
from app.ml.numerics.trees.compiled.shape import deepest
from app.ml.numerics.trees.compiled.traversal import next_node
from app.ml.numerics.trees.forest import Trees
from app.ml.numerics.trees.growth import Grown
from app.ml.numerics.trees.linear_forms import NONE, Forms


def branches_of(tree: Trees | Grown) -> dict[str, Labels]:
    """The nodes (N,) that rows go to by the result of the split; -1: none. A missing value may go left or right."""
    is_split, left = tree.column >= 0, tree.left.astype(np.intp)
    return {
        "left": np.where(is_split, left, -1),
        "right": np.where(is_split & np.isfinite(tree.threshold), left + 1, -1),
        "missing": np.where(is_split & (tree.missing >= 0), left + tree.missing, -1),
    }


def depth(tree: Trees) -> int:
    """Largest number of splits that a row passes."""
    return int(deepest(tree.column, tree.threshold, tree.left, tree.missing))


def importances(tree: Trees, gain: Vector, splits: Forms = NONE) -> dict[int, float]:
    """Share of each column with a split in the impurity that all splits took away, largest first.

    The share of a form is divided among its columns, by their `part`.
    """
    is_split, d = tree.column >= 0, tree.levels.size - splits.size
    alone, formed = is_split & (tree.column < d), np.flatnonzero(tree.column >= d)
    entries = splits.take(tree.column[formed] - d)
    tested = np.append(tree.column[alone], entries.column)
    won = np.append(gain[alone], entries.part * np.repeat(gain[formed], np.diff(entries.start)))
    columns, group = np.unique(tested, return_inverse=True)
    taken = np.bincount(group, won, len(columns))
    shares = taken / (taken.sum() or 1.0)
    return {int(columns[i]): float(shares[i]) for i in np.argsort(-shares, kind="stable")}


def path(tree: Trees, row: Vector) -> list[int]:
    """The nodes that one row (d,) visits, from the root to a leaf, or to where it goes to both children."""
    visited = [0]
    while tree.column[visited[-1]] >= 0:
        to = next_node(row, visited[-1], *tree[1:5], *tree[6:8])
        if to < 0:
            break
        visited.append(to)
    return visited


def column_shares(trees: Trees, gain: Vector, splits: Forms) -> Vector:
    """(d,) share of each column in the gain of all splits."""
    shares = np.zeros(trees.levels.size - splits.size)
    for column, share in importances(trees, gain, splits).items():
        shares[column] = share
    return shares


def with_prior(grown: Grown, prior_weight: float) -> NDArray[np.float64]:
    """(N, k) shares of the classes in each node, beside rows of so much weight that have the shares of the root."""
    weight = grown.weight[:, None]
    return np.asarray((weight * grown.value + prior_weight * grown.value[0]) / (weight + prior_weight))
