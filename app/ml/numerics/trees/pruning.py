"""Cutting a tree back to where each leaf is worth its cost.

Reference: Breiman et al. (1984), CART, ch. 3 (minimal cost-complexity).
"""

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels
from app.ml.numerics.trees.compiled.shape import cut_back
from app.ml.numerics.trees.growth import Grown


def prune(tree: Grown, levels: Labels, cost: float) -> Grown:
    """The smallest subtree that minimises impurity × share of the weight plus `cost` for every leaf; `tree` is used up.

    levels: (d,) as in `Data`.
    """
    unit = float(tree.weight[0])
    is_kept = np.zeros(tree.column.size, np.bool_)
    cut_back(tree.column, tree.threshold, tree.left, tree.missing, tree.share, tree.gain, unit, cost, is_kept)
    return _compact(tree, levels, is_kept)


def _compact(tree: Grown, levels: Labels, is_kept: NDArray[np.bool_]) -> Grown:
    """Only these nodes and the truths of their levels, numbered anew. Siblings stay neighbours."""
    number = np.append(np.cumsum(is_kept) - 1, -1).astype(np.int32)  # the last place stands for -1
    fields = {name: array[is_kept] for name, array in tree._asdict().items() if name != "members"}
    fields["left"] = number[fields["left"]]
    subsets = np.flatnonzero(
        (fields["column"] >= 0) & (levels[fields["column"]] > 0) & np.isfinite(fields["threshold"])
    )
    sizes, begins = levels[fields["column"][subsets]], fields["threshold"][subsets].astype(np.intp)
    truths = [tree.members[begin : begin + size] for begin, size in zip(begins, sizes, strict=True)]
    fields["threshold"][subsets] = np.cumsum(sizes) - sizes
    return Grown(**fields, members=np.concatenate([*truths, np.zeros(0, np.bool_)]))
