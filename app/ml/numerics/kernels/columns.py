"""Passes over a matrix whose columns have a number each: over all rows at once, without an array in between."""

import numpy as np

from app.ml.numerics.compiled import inner, kernel

UNSEEN, OUTSIDE, EMPTY = range(3)
"""What a cell may be that is not inside: no level of a category, beyond the range, nothing where something is put."""


@inner
def is_outside(values, first, last, inside, i, j):
    """`outside` of one number."""
    good = (values[i, j] >= first[0, j]) & (values[i, j] <= last[0, j])
    inside[i, j] = good
    return not good


def fetch() -> None:
    """All, from disk or compiled: what asks whether they are ready finds them so."""
    _ = outside.compiled, standardise.compiled, grouped.compiled


@kernel("i8(f8[:,::1], f8[:,::1], f8[:,::1], b1[:,::1])", writes=["inside"], keep_gil=True)
def outside(values, first, last, inside):
    """How many of (n, p) are not from `first` to `last` (1, p) of their column, as NaN is; `inside`: which are."""
    found = 0
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            found += is_outside(values, first, last, inside, i, j)
    return found


@kernel(
    "i8(f8[:,::1], f8[:,::1], f8[:,::1], b1[:,::1], f8[:,::1], f8[:,::1], f8[:,::1])",
    writes=["inside", "x"],
    keep_gil=True,
    ieee=True,
)
def standardise(values, first, last, inside, offset, scale, x):
    """Into x (n, p): (values - offset) / scale, which are (1, p). The answer is that of `outside`."""
    found = 0
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            found += is_outside(values, first, last, inside, i, j)
            x[i, j] = (values[i, j] - offset[0, j]) / scale[0, j]
    return found


@inner
def what_is_wrong(value, absent, missing, fills):
    """With a cell that is not inside; -1: nothing."""
    if absent == absent:  # a category  # noqa: PLR0124
        return UNSEEN if value == absent or (np.isnan(value) and not missing) else -1
    if np.isnan(value):
        return EMPTY if fills else -1
    return OUTSIDE


@kernel("i8(f8[:,::1], b1[:,::1], f8[::1], b1[::1], b1, i8[::1], i8[:,::1])", writes=["rows", "groups"], keep_gil=True)
def grouped(values, inside, absent, missing, fills, rows, groups):
    """The cells of (n, p) that are not `inside`, by p·what is wrong + column; how many groups there are.

    groups: (2, g), for each its number, ascending, and where it ends in `rows`, which has those of each, ascending.
    absent, missing: (p,), and fills, as in `app.ml.doubts.Doubts`.
    """
    width, found = values.shape[1], 0
    where, keys, places = np.empty(rows.size, np.int64), np.empty(rows.size, np.int64), np.zeros(3 * width, np.int64)
    for i in range(values.shape[0]):
        if inside[i].all():
            continue
        for j in range(width):
            wrong = -1 if inside[i, j] else what_is_wrong(values[i, j], absent[j], missing[j], fills)
            if wrong >= 0:
                where[found], keys[found] = i, wrong * width + j
                places[keys[found]] += 1
                found += 1
    many, end = 0, 0
    for key in range(places.size):
        if places[key]:
            end, places[key] = end + places[key], end
            groups[0, many], groups[1, many] = key, end
            many += 1
    for k in range(found):
        rows[places[keys[k]]] = where[k]
        places[keys[k]] += 1
    return many
