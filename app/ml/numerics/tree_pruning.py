"""Cutting a tree back to where each leaf is worth its cost.

Reference: Breiman et al. (1984), CART, ch. 3 (minimal cost-complexity).
"""

import numpy as np
from numpy.typing import NDArray

from app.ml.contract import Labels
from app.ml.numerics.growth import Grown
from app.ml.numerics.tree import ways


def prune(tree: Grown, levels: Labels, cost: float) -> Grown:
    """The smallest subtree that minimises impurity × weight (root = 1) plus `cost` for every leaf.

    levels: (d,) as in `Data`.
    """
    below = ways(tree)
    stump = max(float(tree.weight[0] * tree.impurity[0]), np.finfo(np.float64).tiny)
    asks = tree.column >= 0
    worth = np.where(asks, tree.gain / stump - cost * ((below >= 0).sum(axis=0) - 1), 0.0)
    for node in reversed(np.flatnonzero(asks)):  # children before parents
        following = below[:, node]
        worth[node] += np.maximum(worth[following[following >= 0]], 0).sum()
    leaf = worth <= 0
    return _compact(_cut(tree, leaf), levels, _reachable(below, leaf))


def _reachable(below: NDArray[np.intp], leaf: NDArray[np.bool_]) -> NDArray[np.bool_]:
    reached = np.zeros(len(leaf), np.bool_)
    front = np.zeros(1, np.intp)
    while front.size:
        reached[front] = True
        following = below[:, front[~leaf[front]]].ravel()
        front = following[following >= 0]
    return reached


def _cut(tree: Grown, leaf: NDArray[np.bool_]) -> Grown:
    """Take their questions from these nodes."""
    off = {"column": -1, "left": -1, "missing": -1, "threshold": 0, "share": 1, "gain": 0}
    fields = {name: np.where(leaf, value, getattr(tree, name)) for name, value in off.items()}
    return tree._replace(**{name: array.astype(getattr(tree, name).dtype) for name, array in fields.items()})


def _compact(tree: Grown, levels: Labels, kept: NDArray[np.bool_]) -> Grown:
    """Only these nodes and the truths of their levels, numbered anew. Siblings stay neighbours."""
    number = np.append(np.cumsum(kept) - 1, -1).astype(np.int32)  # the last place answers for -1
    fields = {name: array[kept] for name, array in tree._asdict().items() if name != "members"}
    fields["left"] = number[fields["left"]]
    subsets = np.flatnonzero(
        (fields["column"] >= 0) & (levels[fields["column"]] > 0) & np.isfinite(fields["threshold"])
    )
    sizes, begins = levels[fields["column"][subsets]], fields["threshold"][subsets].astype(np.intp)
    truths = [tree.members[begin : begin + size] for begin, size in zip(begins, sizes, strict=True)]
    fields["threshold"][subsets] = np.cumsum(sizes) - sizes
    return Grown(**fields, members=np.concatenate([*truths, np.zeros(0, np.bool_)]))
