"""Squared distances of all pairs of rows, each by its differences."""

from app.ml.contract.algorithm import Matrix
from app.ml.numerics.jit import kernel

BLOCK = 1024
"""Pairs whose sums stay in the cache from column to column."""


@kernel("void(f8[:,::1], f8[:,::1], f8[:,::1])", writes=["squares"])
def squared_differences(left: Matrix, right: Matrix, squares: Matrix) -> None:
    """(n, m) squares for rows left (n, d), and right (d, m) by column. A pair has the same bits among any others."""
    d, m = right.shape
    for i in range(len(left)):
        for start in range(0, m, BLOCK):
            stop = min(start + BLOCK, m)
            for k in range(start, stop):
                squares[i, k] = 0.0
            for j in range(d):
                value = left[i, j]
                for k in range(start, stop):
                    apart = value - right[j, k]
                    squares[i, k] += apart * apart
