"""The way of many rows through trees that ask about numbers only. `app.ml.numerics.trees` packs their nodes.

One row waits at every question for the memory that holds the next. Eight rows go down a tree side by side, so that
their waits overlap; the next node is computed, not jumped to, and a leaf leads to itself until all eight are there.
"""

import numpy as np

from app.ml.numerics.compiled import inner, kernel

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
    way = nodes[node, U(1)]
    return (way & LOW) + U(keys[row, way >> U(32)] > nodes[node, U(0)])


@kernel("void(f8[:,::1], i4[::1], u8[:,::1], f8[:,::1], i8, b1, b1[::1], f8[:,::1])", writes=["gaps", "out"])
def add_plain(x, root, nodes, answer, block, apart, gaps, out):
    """The sum of all trees' answers for each row of x (n, d) into `out` (n, k), `block` rows at a time.

    apart: the first number of each tree's answer instead, `out` being (n, T). Rows with NaN are marked in `gaps` (n,);
    what is said of them means nothing.
    """
    n, d = x.shape
    size = (min(block, n) + LANES - 1) // LANES * LANES
    keys = np.zeros((size, d + 1), np.uint64)  # the last column is less than any key: leaves ask about it
    ends, told = np.empty(size, np.int64), np.empty((answer.shape[1], size))
    for first in range(0, n, block):
        rows = min(block, n - first)
        for i in range(rows):
            gap = False
            for j in range(d):
                gap |= np.isnan(x[first + i, j])
                keys[i, j] = key(x[first + i, j])
            gaps[first + i] = gap
        told[:] = 0.0
        for t in range(root.size):
            for i in range(0, rows, LANES):
                r = U(i)
                a = b = c = d_ = e = f = g = h = U(root[t])
                moved = U(1)
                while moved:
                    a1, b1 = onward(keys, r, nodes, a), onward(keys, r + U(1), nodes, b)
                    c1, d1 = onward(keys, r + U(2), nodes, c), onward(keys, r + U(3), nodes, d_)
                    e1, f1 = onward(keys, r + U(4), nodes, e), onward(keys, r + U(5), nodes, f)
                    g1, h1 = onward(keys, r + U(6), nodes, g), onward(keys, r + U(7), nodes, h)
                    moved = (a ^ a1) | (b ^ b1) | (c ^ c1) | (d_ ^ d1) | (e ^ e1) | (f ^ f1) | (g ^ g1) | (h ^ h1)
                    a, b, c, d_, e, f, g, h = a1, b1, c1, d1, e1, f1, g1, h1
                for lane, node in enumerate((a, b, c, d_, e, f, g, h)):
                    ends[i + lane] = np.int64(nodes[node, U(0)])
            for s in range(0 if apart else told.shape[0]):
                for i in range(rows):
                    told[s, i] += answer[ends[i], s]
            for i in range(rows if apart else 0):
                out[first + i, t] = answer[ends[i], 0]
        for i in range(0 if apart else rows):
            for s in range(told.shape[0]):
                out[first + i, s] = told[s, i]
