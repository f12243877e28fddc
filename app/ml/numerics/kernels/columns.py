"""Passes over a matrix whose columns have a number each: over all rows at once, without an array in between."""

from app.ml.numerics.compiled import inner, kernel


@inner
def is_outside(values, first, last, inside, i, j):
    """`outside` of one number."""
    good = (values[i, j] >= first[0, j]) & (values[i, j] <= last[0, j])
    inside[i, j] = good
    return not good


def fetch() -> None:
    """Both, from disk or compiled: what asks whether they are ready finds them so."""
    _ = outside.compiled, standardise.compiled


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
