"""Out-of-bag votes of one tree of a forest, and its errors with a column permuted.

Reference: Breiman (2001), Machine Learning 45:5.
"""

import numpy as np

from app.ml.numerics.jit import inner, kernel
from app.ml.numerics.sampling.compiled.draws import below
from app.ml.numerics.trees.compiled.growth import likeliest
from app.ml.numerics.trees.compiled.traversal import leaf, part

TREE = "i4[::1], f8[::1], i4[::1], i1[::1], f8[::1], i8[::1], b1[::1], f8[:,::1]"
"""Types of `Trees` from `column` on."""


@kernel(
    "void(f8[:,::1], i4[::1], i4[::1], f8[::1], i4[::1], i1[::1], i8[::1], b1[::1], i4[::1])",
    writes=["ends"],
)
def reach(x, rows, column, threshold, left, missing, levels, members, ends):
    """Ends of these rows of x (n, d) in the tree that begins at node 0; -1 - node where one goes to both children."""
    for p in range(rows.size):
        ends[p] = leaf(x[rows[p]], 0, column, threshold, left, missing, levels, members)


ADD_VOTES = f"void(f8[:,::1], i4[::1], i4[::1], {TREE}, f8[:], f8, {{}}[:,::1])"


@kernel(*map(ADD_VOTES.format, ("f4", "u1", "u2")), writes=["result"])
def add_votes(x, rows, ends, column, threshold, left, missing, share, levels, members, values, truth, unit, result):
    """Add to `result` (n, k) the values of the tree for these rows, which end there, less `truth` (n,) or nothing, and
    times `unit`.
    """
    vote = np.empty(result.shape[1])
    for p in range(rows.size):
        i, end = rows[p], np.int64(ends[p])
        vote[:] = -truth[i] if truth.size else 0.0
        if end < 0:
            part(x[i], -1 - end, column, threshold, left, missing, share, levels, members, values, vote)
        else:
            for s in range(vote.size):
                vote[s] += values[left[end], s]
        for s in range(vote.size):
            result[i, s] += vote[s] * unit


@inner
def wrong(vote, y, numbers):
    """Squared error of a number; of classes, whether the likeliest is another."""
    if numbers:
        return (vote[0] - y) ** 2
    return 0.0 if likeliest(vote) == y else 1.0


@kernel(
    f"f8(f8[:,::1], f8[::1], f8[::1], b1, i4[::1], u8, {TREE}, f8[::1])",
    writes=["more"],
)
def permuted(x, y, weight, numbers, rows, seed, column, threshold, left, missing, share, levels, members, values, more):
    """The tree's mean error on these rows, and in `more` (d,) how much it grows when a column is permuted in them."""
    d, k = x.shape[1], values.shape[1]
    state = np.array([seed], np.uint64)
    other, used = rows.copy(), np.zeros(d, np.bool_)
    row, vote, errors = np.empty(d), np.empty(k), np.empty(rows.size)
    error, whole = 0.0, 0.0
    for node in range(column.size):
        if column[node] >= 0:
            used[column[node]] = True
    for j in range(-1, d):
        more[max(j, 0)] = 0.0
        if j >= 0 and not used[j]:
            continue
        for p in range(rows.size - 1, 0, -1):
            swap = below(p + 1, state)
            other[p], other[swap] = other[swap], other[p]
        for p in range(rows.size):
            i = rows[p]
            for c in range(d):
                row[c] = x[i, c]
            if j >= 0:
                row[j] = x[other[p], j]
            end = leaf(row, 0, column, threshold, left, missing, levels, members)
            for s in range(k):
                vote[s] = 0.0 if end < 0 else values[left[end], s]
            if end < 0:
                part(row, -1 - end, column, threshold, left, missing, share, levels, members, values, vote)
            now = weight[i] * wrong(vote, y[i], numbers)
            if j < 0:
                errors[p] = now
                error += now
                whole += weight[i]
            else:
                more[j] += now - errors[p]
    for j in range(d):
        more[j] /= whole
    return error / whole
