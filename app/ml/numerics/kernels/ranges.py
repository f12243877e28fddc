"""Whether numbers are within the ranges of their columns, in one pass over them and without an array per question."""

from app.ml.numerics.compiled import kernel


@kernel("b1(f8[:,::1], f8[:,::1], f8[:,::1])", keep_gil=True)
def within(values, first, last):
    """Whether all of (n, p) are at least `first` and at most `last` (1, p) of their column, and none is NaN."""
    if values.shape[1] != first.shape[1]:
        return False
    for i in range(values.shape[0]):
        inside = True
        for j in range(first.shape[1]):
            inside &= (values[i, j] >= first[0, j]) & (values[i, j] <= last[0, j])
        if not inside:
            return False
    return True
