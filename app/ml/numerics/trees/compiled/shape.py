"""Depth of a tree, and pruning by cost and complexity. Children come after their parents, siblings side by side."""

import math

import numpy as np

from app.ml.numerics.jit import inner, kernel


@inner
def last(node, threshold, left, missing):
    """The last child of a node with a split; the first is `left`."""
    return left[node] + max(0 if math.isinf(threshold[node]) else 1, missing[node])


@kernel("i8(i4[::1], f8[::1], i4[::1], i1[::1])")
def deepest(column, threshold, left, missing):
    """Largest number of splits on a path from the root."""
    depth = np.zeros(column.size, np.int32)
    for node in range(column.size):
        if column[node] >= 0:
            for child in range(left[node], last(node, threshold, left, missing) + 1):
                depth[child] = depth[node] + 1
    return depth.max()


@kernel(
    "void(i4[::1], f8[::1], i4[::1], i1[::1], f8[::1], f8[::1], f8, f8, b1[::1])",
    writes=["column", "threshold", "left", "missing", "share", "gain", "is_kept"],
)
def cut_back(column, threshold, left, missing, share, gain, unit, cost, is_kept):
    """Turn nodes into leaves whose splits, with all below, gain no more than `cost` units for each further leaf.
    kept: (N,) the nodes that remain.
    """
    worth = np.zeros(column.size)
    for node in range(column.size - 1, -1, -1):
        if column[node] >= 0:
            below = 0.0
            for child in range(left[node], last(node, threshold, left, missing) + 1):
                below += max(worth[child], 0.0)
            worth[node] = gain[node] / unit - cost * (last(node, threshold, left, missing) - left[node]) + below
    is_kept[0] = True
    for node in range(column.size):
        if not is_kept[node] or column[node] < 0:
            continue
        if worth[node] > 0:
            is_kept[left[node] : last(node, threshold, left, missing) + 1] = True
        else:
            column[node], left[node], missing[node] = -1, -1, -1
            threshold[node], share[node], gain[node] = 0.0, 1.0, 0.0
