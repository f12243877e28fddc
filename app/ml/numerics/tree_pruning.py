"""Cutting a tree back to where each leaf is worth its cost.

Reference: Breiman et al. (1984), CART, ch. 3 (minimal cost-complexity).
"""

import numpy as np
from numpy.typing import NDArray

from app.ml.numerics.tree import WAYS, Tree


def prune(tree: Tree, cost: float) -> Tree:
    """The smallest subtree that minimises impurity × weight (root = 1) plus `cost` for every leaf."""
    ways = np.stack([tree.left, tree.right, tree.missing])
    stump = max(float(tree.weight[0] * tree.impurity[0]), np.finfo(np.float64).tiny)
    asks = tree.column >= 0
    worth = np.where(asks, tree.gain / stump - cost * ((ways >= 0).sum(axis=0) - 1), 0.0)
    for node in reversed(np.flatnonzero(asks)):  # children before parents
        below = ways[:, node]
        worth[node] += np.maximum(worth[below[below >= 0]], 0).sum()
    leaf = worth <= 0
    return _compact(_cut(tree, leaf), _reachable(ways, leaf))


def _reachable(ways: NDArray[np.intp], leaf: NDArray[np.bool_]) -> NDArray[np.bool_]:
    reached = np.zeros(len(leaf), np.bool_)
    front = np.zeros(1, np.intp)
    while front.size:
        reached[front] = True
        below = ways[:, front[~leaf[front]]].ravel()
        front = below[below >= 0]
    return reached


def _cut(tree: Tree, leaf: NDArray[np.bool_]) -> Tree:
    """Take their questions from these nodes."""
    off = {name: np.where(leaf, -1, getattr(tree, name)) for name in ("column", *WAYS)}
    subset = np.where(leaf[:, None], -1, tree.subset)
    return tree._replace(
        **off, subset=subset, threshold=np.where(leaf, 0.0, tree.threshold), gain=np.where(leaf, 0.0, tree.gain)
    )


def _compact(tree: Tree, kept: NDArray[np.bool_]) -> Tree:
    """Only these nodes, numbered anew."""
    number = np.append(np.cumsum(kept) - 1, -1)  # the last place answers for -1
    fields = {name: array[kept] for name, array in tree._asdict().items() if name != "members"}
    for way in WAYS:
        fields[way] = number[fields[way]]
    return tree._replace(**fields)
