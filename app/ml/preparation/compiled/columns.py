"""Passes over a matrix whose columns have a number each: over all rows at once, without an array in between."""

import numpy as np

from app.ml.contract.algorithm import Vector
from app.ml.numerics.jit import inner, kernel

UNSEEN, NO_CATEGORY, OUTSIDE, NO_NUMBER, EMPTY = range(5)
"""Kinds of a cell that is not inside: no level of a category, no category or number where training lacked none, beyond
the range, nothing where something is put."""
KINDS_OF_DOUBT = 5


ALL_TRUE = 0x0101010101010101
"""Eight truths."""
TOGETHER = 512
"""Numbers of neighbouring rows that a loop takes together: most rows alone are too short for a processor's vectors."""


def repeated(of_columns: Vector) -> Vector:
    """A number for each column (p,), again for each of the rows (n, p) that are taken together, 1-D."""
    return np.tile(of_columns, max(1, TOGETHER // max(1, of_columns.size)))


@inner
def is_outside(values, first, last, inside, j):
    """`outside` of one number."""
    good = (values[j] >= first[j]) & (values[j] <= last[j])
    inside[j] = good
    return not good


def fetch() -> None:
    """All kernels, from disk or compiled: `ready` is true of each afterwards."""
    _ = outside.compiled, standardise.compiled, grouped.compiled


@kernel("i8(f8[:,::1], f8[::1], f8[::1], b1[:,::1])", writes=["inside"], keep_gil=True)
def outside(values, first, last, inside):
    """Number of values (n, p) beyond `first` … `last` of their column, as NaN is; `inside`: the mask of the rest.

    What has a number for each column is `repeated`.
    """
    outside_count, step = 0, first.size
    numbers, result = values.reshape(values.size), inside.reshape(inside.size)
    for start in range(0, numbers.size, step):
        some, good = numbers[start : start + step], result[start : start + step]
        for j in range(some.size):
            outside_count += is_outside(some, first, last, good, j)
    return outside_count


@kernel(
    "i8(f8[:,::1], f8[::1], f8[::1], b1[:,::1], f8[::1], f8[::1], f8[:,::1])",
    writes=["inside", "x"],
    keep_gil=True,
    ieee=True,
)
def standardise(values, first, last, inside, offset, scale, x):
    """Into x (n, p): (values - offset) / scale. The result is that of `outside`, and so are the arguments."""
    outside_count, step = 0, first.size
    numbers, result, made = values.reshape(values.size), inside.reshape(inside.size), x.reshape(x.size)
    for start in range(0, numbers.size, step):
        some, good, to = numbers[start : start + step], result[start : start + step], made[start : start + step]
        for j in range(some.size):
            outside_count += is_outside(some, first, last, good, j)
            to[j] = (some[j] - offset[j]) / scale[j]
    return outside_count


@inner
def what_is_wrong(value, absent, missing, fills):
    """With a cell that is not inside; -1: nothing."""
    categorical = absent == absent  # noqa: PLR0124  NaN
    if np.isnan(value):
        if fills:
            return EMPTY
        if missing:
            return -1
        return NO_CATEGORY if categorical else NO_NUMBER
    if categorical:
        return UNSEEN if value == absent else -1
    return OUTSIDE


@kernel(
    "i8(f8[:,::1], b1[:,::1], f8[::1], b1[::1], b1[::1], i8[::1], i8[:,::1])", writes=["rows", "groups"], keep_gil=True
)
def grouped(values, inside, absent, missing, fills, rows, groups):
    """The cells of (n, p) that are not `inside`, by p·what is wrong + column; how many groups there are.

    groups: (2, g), for each its number, ascending, and where it ends in `rows`, which has those of each, ascending.
    absent, missing, fills: (p,), as in `app.ml.preparation.flags.RowFlags`.
    """
    width, count = values.shape[1], 0
    where, keys = np.empty(rows.size, np.int64), np.empty(rows.size, np.int64)
    places = np.zeros(KINDS_OF_DOUBT * width, np.int64)
    result = inside.reshape(inside.size)
    words = result[: result.size // 8 * 8].view(np.int64)
    for k in range(words.size + 1):  # and what is left
        if k < words.size and words[k] == ALL_TRUE:
            continue
        for cell in range(8 * k, min(8 * k + 8, result.size)):
            i, j = divmod(cell, width)
            wrong = -1 if result[cell] else what_is_wrong(values[i, j], absent[j], missing[j], fills[j])
            if wrong >= 0:
                where[count], keys[count] = i, wrong * width + j
                places[keys[count]] += 1
                count += 1
    many, end = 0, 0
    for key in range(places.size):
        if places[key]:
            end, places[key] = end + places[key], end
            groups[0, many], groups[1, many] = key, end
            many += 1
    for k in range(count):
        rows[places[keys[k]]] = where[k]
        places[keys[k]] += 1
    return many
