"""Traversal of trees by rows. The arguments are the fields of `app.ml.numerics.trees.forest.Trees`."""

import math

import numpy as np

from app.ml.numerics.jit import inner, kernel, seldom

BLOCK = 256
"""Rows that go through a tree together."""


@inner
def step(value, node, column, threshold, left, missing, levels, members):
    """The next node of a row with this value of the node's column; -1 if it goes to both children."""
    if np.isnan(value):
        return left[node] + missing[node] if missing[node] >= 0 else -1
    if levels[column]:
        if math.isinf(threshold[node]):
            return np.int64(left[node])
        return left[node] + (0 if members[np.int64(threshold[node]) + np.int64(value)] else 1)
    return left[node] + (value > threshold[node])


@seldom
def part(row, node, column, threshold, left, missing, share, levels, members, values, out):
    """Add to `out` (k,) the values of all leaves that a row reaches from a node where it goes to both children.

    The parts multiply on the way and sum to 1 (Quinlan 1993, C4.5, ch. 3).
    """
    nodes, parts = np.empty(column.size - node, np.int64), np.empty(column.size - node)
    nodes[0], parts[0], open_ = node, 1.0, 1
    while open_:
        open_ -= 1
        node_index, weight = nodes[open_], parts[open_]
        while column[node_index] >= 0:
            to = step(
                row[column[node_index]], node_index, column[node_index], threshold, left, missing, levels, members
            )
            if to < 0:
                nodes[open_], parts[open_] = left[node_index] + 1, weight * (1 - share[node_index])
                open_ += 1
                weight *= share[node_index]
                to = np.int64(left[node_index])
            node_index = to
        for s in range(out.size):
            out[s] += weight * values[left[node_index], s]


@inner
def leaf(row, node, column, threshold, left, missing, levels, members):
    """End of a row that starts at `node`; or the node where it goes to both children, as -1 - node."""
    while column[node] >= 0:
        to = step(row[column[node]], node, column[node], threshold, left, missing, levels, members)
        if to < 0:
            return -1 - node
        node = to
    return node


@kernel(
    "void(f8[:,::1], i4[::1], i4[::1], f8[::1], i4[::1], i1[::1], f8[::1], i8[::1], b1[::1], f8[:,::1], f8[:,::1])",
    writes=["out"],
)
def add_values(x, root, column, threshold, left, missing, share, levels, members, values, out):
    """Add every tree's value for each row of x (n, d) to its row of `out` (n, k)."""
    n, k = out.shape
    for first in range(0, n, BLOCK):
        for t in range(root.size):
            if not 0 <= root[t] < column.size:
                continue
            for i in range(first, min(first + BLOCK, n)):
                end = leaf(x[i], np.int64(root[t]), column, threshold, left, missing, levels, members)
                if end < 0:
                    part(x[i], -1 - end, column, threshold, left, missing, share, levels, members, values, out[i])
                else:
                    for s in range(k):
                        out[i, s] += values[left[end], s]


@kernel("i8(f8[::1], i8, i4[::1], f8[::1], i4[::1], i1[::1], i8[::1], b1[::1])")
def next_node(row, node, column, threshold, left, missing, levels, members):
    """The node after this one for a row (d,); -1 if it goes to both children."""
    return step(row[column[node]], node, column[node], threshold, left, missing, levels, members)
