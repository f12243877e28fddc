"""Squared distances of rows to points, each by its differences; the points by column, so that a processor works on
several at once.
"""

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.jit import inner, kernel

BLOCK = 1024
"""Pairs whose sums stay in the cache from column to column."""


@inner
def add_squares(row: Vector, points: Matrix, low: int, high: int, values: Vector) -> None:
    """Squared distances of the row to the points low … high - 1, four columns at a time."""
    values[:] = 0.0
    whole = row.size // 4 * 4
    for j in range(0, whole, 4):
        p, q, r, s = row[j], row[j + 1], row[j + 2], row[j + 3]
        a, b = points[j][low:high], points[j + 1][low:high]
        c, d = points[j + 2][low:high], points[j + 3][low:high]
        for t in range(values.size):
            e, f, g, h = a[t] - p, b[t] - q, c[t] - r, d[t] - s
            values[t] += (e * e + f * f) + (g * g + h * h)
    for j in range(whole, row.size):
        p, a = row[j], points[j][low:high]
        for t in range(values.size):
            e = a[t] - p
            values[t] += e * e


@kernel("void(f8[:,::1], f8[:,::1], f8[:,::1])", writes=["squares"])
def squared_differences(left: Matrix, right: Matrix, squares: Matrix) -> None:
    """(n, m) squares for rows left (n, d), and right (d, m) by column. A pair has the same bits among any others."""
    m = right.shape[1]
    for i in range(len(left)):
        for low in range(0, m, BLOCK):
            high = min(low + BLOCK, m)
            add_squares(left[i], right, low, high, squares[i][low:high])
