"""Linear forms of rows, and trees whose splits or leaves are linear forms.

The arguments from `start` on are the fields of `app.ml.numerics.trees.linear_forms.Forms`, those
from `column` on of `Trees`.
"""

import numpy as np

from app.ml.numerics.jit import inner, kernel
from app.ml.numerics.trees.compiled.traversal import step

FORMS = "i8[::1], i4[::1], f8[::1], f8[::1]"
TREE = "i4[::1], f8[::1], i4[::1], i1[::1], f8[::1], i8[::1], b1[::1]"


@inner
def form(row, f, start, column, coef, centre):
    """Σ coef (x - centre); NaN where a value is missing."""
    total = 0.0
    for e in range(start[f], start[f + 1]):
        total += coef[e] * (row[column[e]] - centre[e])
    return total


@kernel(f"void(f8[:,::1], {FORMS}, f8[:,::1])", writes=["out"])
def project(x, start, column, coef, centre, out):
    """Every form of every row of x (n, d) into `out` (n, F)."""
    for i in range(x.shape[0]):
        for f in range(start.size - 1):
            out[i, f] = form(x[i], f, start, column, coef, centre)


@inner
def leaf_value(row, r, start, column, coef, centre, values, low, high):
    """The first value of a leaf with its form, in which missing values are at their centres, within its bounds."""
    total = values[r, 0]
    for e in range(start[r], start[r + 1]):
        value = row[column[e]]
        if not np.isnan(value):
            total += coef[e] * (value - centre[e])
    return min(max(total, low[r]), high[r])


@kernel(f"void(f8[:,::1], {TREE}, f8[:,::1], {FORMS}, {FORMS}, f8[::1], f8[::1], f8[:,::1])", writes=["out"])
def add_formed(
    x,
    column,
    threshold,
    left,
    missing,
    share,
    levels,
    members,
    values,
    start,
    entry,
    coef,
    centre,
    start_,
    entry_,
    coef_,
    centre_,
    low,
    high,
    out,
):
    """Add one tree's value for each row of x (n, d) to its row of `out` (n, k).

    A node's column from d on is the form (of the first four arrays) of that number less d. Leaves predict by the forms
    of the other four, if there are any, within `low` and `high`.
    """
    d, linear = x.shape[1], start_.size > 1
    nodes, parts = np.empty(column.size, np.int64), np.empty(column.size)
    for i in range(x.shape[0]):
        nodes[0], parts[0], open_ = 0, 1.0, 1
        while open_:
            open_ -= 1
            node, part = nodes[open_], parts[open_]
            while column[node] >= 0:
                j = np.int64(column[node])
                value = x[i, j] if j < d else form(x[i], j - d, start, entry, coef, centre)
                to = step(value, node, j, threshold, left, missing, levels, members)
                if to < 0:
                    nodes[open_], parts[open_] = left[node] + 1, part * (1 - share[node])
                    open_ += 1
                    part *= share[node]
                    to = np.int64(left[node])
                node = to
            r = np.int64(left[node])
            if linear:
                out[i, 0] += part * leaf_value(x[i], r, start_, entry_, coef_, centre_, values, low, high)
            else:
                for s in range(out.shape[1]):
                    out[i, s] += part * values[r, s]


@kernel(f"void(f8[:,::1], {TREE}, {FORMS}, i8[::1])", writes=["out"])
def reach(x, column, threshold, left, missing, _share, levels, members, start, entry, coef, centre, out):
    """The node at which each row of x (n, d) ends; -1 if it goes to both children before."""
    d = x.shape[1]
    for i in range(x.shape[0]):
        node = np.int64(0)
        while node >= 0 and column[node] >= 0:
            j = np.int64(column[node])
            value = x[i, j] if j < d else form(x[i], j - d, start, entry, coef, centre)
            node = np.int64(step(value, node, j, threshold, left, missing, levels, members))
        out[i] = node
