"""Squared distances by difference, and the two lowest scores of a block of products."""

import math

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.jit import inner, kernel


@kernel("void(f8[:,::1], i8[::1], f8[::1], f8, f8, f8[:,::1], f8[::1], f8[::1])", writes=["moved", "lengths", "doubt"])
def shift(
    x: Matrix,
    rows: Labels,
    origin: Vector,
    rounding: float,
    longest: float,
    moved: Matrix,
    lengths: Vector,
    doubt: Vector,
) -> None:
    """`moved` is the rows less the origin, `lengths` their squared lengths, `doubt` what rounding does to a score."""
    for t in range(rows.size):
        row = x[rows[t]]
        for j in range(row.size):
            moved[t, j] = row[j] - origin[j]
        lengths[t] = square(row, origin)
        doubt[t] = rounding * (lengths[t] + longest)


@kernel("void(f8[:,::1], f8[:,::1], i8[::1], f8[::1])", writes=["squares"])
def squares_to(x: Matrix, centres: Matrix, labels: Labels, squares: Vector) -> None:
    """Squared distance of each row of x (n, d) to its centre, by difference."""
    for i in range(x.shape[0]):
        squares[i] = square(x[i], centres[labels[i]])


@inner
def square(a: Vector, b: Vector) -> float:
    """‖a − b‖², in four sums, which the processor adds at the same time."""
    whole = a.size // 4 * 4
    one = two = three = four = 0.0
    for j in range(0, whole, 4):
        one += (a[j] - b[j]) * (a[j] - b[j])
        two += (a[j + 1] - b[j + 1]) * (a[j + 1] - b[j + 1])
        three += (a[j + 2] - b[j + 2]) * (a[j + 2] - b[j + 2])
        four += (a[j + 3] - b[j + 3]) * (a[j + 3] - b[j + 3])
    for j in range(whole, a.size):
        one += (a[j] - b[j]) * (a[j] - b[j])
    return (one + two) + (three + four)


@kernel("void(f8[:,::1], f8[::1], i8[::1], f8[::1], f8[::1])", writes=["places", "first", "second"])
def two_lowest(products: Matrix, halves: Vector, places: Labels, first: Vector, second: Vector) -> None:
    """The two lowest of `halves[c] - products[c, i]` for each i, products (k, n), and which c has the lowest."""
    places[:] = 0
    first[:] = np.inf
    second[:] = np.inf
    for c in range(products.shape[0]):
        half = halves[c]
        for i in range(products.shape[1]):
            score = half - products[c, i]
            best = first[i]
            lower = score < best
            other = best if lower else score
            second[i] = min(second[i], other)
            places[i] = c if lower else places[i]
            first[i] = score if lower else best


CLOSE = 1e-8
"""Share of the squared lengths below which a squared distance by products has lost digits."""


@kernel("void(f8[:,::1], f8[:,::1], f8[::1], i8, b1, f8[:,::1])", writes=["found"])
def from_products(products: Matrix, points: Matrix, lengths: Vector, start: int, root: bool, found: Matrix) -> None:
    """Squared distances of the points start, start + 1, … to all (b, n), or their roots, from inner products (b, n).

    lengths: (n,) squared. Close points are compared by difference.
    """
    for t in range(products.shape[0]):
        own = lengths[start + t]
        for i in range(lengths.size):
            found[t, i] = own + lengths[i] - 2 * products[t, i]
        for i in range(lengths.size):
            if found[t, i] <= CLOSE * (own + lengths[i]):
                found[t, i] = square(points[start + t], points[i])
        if root:
            for i in range(lengths.size):
                found[t, i] = math.sqrt(found[t, i])
