"""Traversal of trees by many rows, where all splits are of numbers. `app.ml.numerics.trees.forest` packs their nodes.

One row waits at every split for the memory that holds the next. Eight rows go down a tree side by side, so that
their waits overlap; the next node is computed, not jumped to, and a leaf leads to itself until all eight are there.
"""

import numpy as np

from app.ml.numerics.jit import inner, kernel

U = np.uint64
LANES = 8
"""Rows side by side: `add_plain` names each of them."""
LOW = U(0xFFFFFFFF)
SIGN = U(1 << 63)


@inner
def key(value):
    """Whole numbers in the order of the floats, -0 being 0; none is 0 or the greatest."""
    bits = np.float64(value + 0.0).view(np.uint64)
    return bits ^ ((U(0) - (bits >> U(63))) | SIGN)


@inner
def onward(keys, row, nodes, node):
    """The node after this one; of a leaf itself."""
    test = nodes[node, U(1)]
    return (test & LOW) + U(keys[row, test >> U(32)] > nodes[node, U(0)])


@inner
def ends_of(keys, row, stride, nodes, a, b, c, d, e, f, g, h):
    """Ends of eight nodes: each for a row of its own, if these are 1 apart, or all for the same one."""
    two, four = stride + stride, U(4) * stride
    moved = U(1)
    while moved:
        a1, b1 = onward(keys, row, nodes, a), onward(keys, row + stride, nodes, b)
        c1, d1 = onward(keys, row + two, nodes, c), onward(keys, row + two + stride, nodes, d)
        e1, f1 = onward(keys, row + four, nodes, e), onward(keys, row + four + stride, nodes, f)
        g1, h1 = onward(keys, row + four + two, nodes, g), onward(keys, row + four + two + stride, nodes, h)
        moved = (a ^ a1) | (b ^ b1) | (c ^ c1) | (d ^ d1) | (e ^ e1) | (f ^ f1) | (g ^ g1) | (h ^ h1)
        a, b, c, d, e, f, g, h = a1, b1, c1, d1, e1, f1, g1, h1
    return a, b, c, d, e, f, g, h


@inner
def written(x, i, keys, row):
    """Write the keys of a row, and return True if a value is missing."""
    gap = False
    for j in range(x.shape[1]):
        gap |= np.isnan(x[i, j])
        keys[row, j] = key(x[i, j])
    return gap


@kernel("i8(f8[:,::1], i4[::1], u8[:,::1], f8[:,::1], i8, b1, f8[:,::1])", writes=["out"])
def add_plain(x, root, nodes, values, block, by_tree, out):
    """The sum of all trees' values for each row of x (n, d) into `out` (n, k), `block` rows at a time.

    apart: the first number of each tree's value instead, `out` being (n, T). Rows with NaN get values without a
    meaning. Returns how many they are.
    """
    n, d = x.shape
    size = (min(block, n) + LANES - 1) // LANES * LANES
    keys = np.zeros((size, d + 1), np.uint64)  # the last column is less than any key: leaves compare it
    ends, result = np.empty(size, np.int64), np.empty((values.shape[1], size))
    gaps = 0
    for first in range(0, n, block):
        rows = min(block, n - first)
        for i in range(rows):
            gaps += written(x, first + i, keys, i)
        result[:] = 0.0
        for t in range(root.size):
            for i in range(0, rows, LANES):
                a = U(root[t])
                for lane, node in enumerate(ends_of(keys, U(i), U(1), nodes, a, a, a, a, a, a, a, a)):
                    ends[i + lane] = np.int64(nodes[node, U(0)])
            for s in range(0 if by_tree else result.shape[0]):
                for i in range(rows):
                    result[s, i] += values[ends[i], s]
            for i in range(rows if by_tree else 0):
                out[first + i, t] = values[ends[i], 0]
        for i in range(0 if by_tree else rows):
            for s in range(result.shape[0]):
                out[first + i, s] = result[s, i]
    return gaps


@kernel("i8(f8[:,::1], i4[::1], u8[:,::1], f8[:,::1], b1, f8[:,::1])", writes=["out"], keep_gil=True)
def add_plain_few(x, root, nodes, values, by_tree, out):
    """The same for a few rows: each goes down eight trees side by side."""
    n, d = x.shape
    size = (root.size + LANES - 1) // LANES * LANES
    keys, node_of_lane = np.zeros((1, d + 1), np.uint64), np.zeros(size, np.uint64)
    for t in range(root.size):
        node_of_lane[t] = U(root[t])
    gaps = 0
    for i in range(n):
        gaps += written(x, i, keys, 0)
        out[i] = 0.0
        for t in range(0, size, LANES):
            a, b, c, d_ = node_of_lane[t], node_of_lane[t + 1], node_of_lane[t + 2], node_of_lane[t + 3]
            e, f, g, h = node_of_lane[t + 4], node_of_lane[t + 5], node_of_lane[t + 6], node_of_lane[t + 7]
            for lane, node in enumerate(ends_of(keys, U(0), U(0), nodes, a, b, c, d_, e, f, g, h)):
                leaf = np.int64(nodes[node, U(0)])
                for s in range(0 if by_tree or t + lane >= root.size else values.shape[1]):
                    out[i, s] += values[leaf, s]
                if by_tree and t + lane < root.size:
                    out[i, t + lane] = values[leaf, 0]
    return gaps
