"""Squared distances by difference, and the two lowest scores of a block of products in single precision."""

import math

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.jit import inner, kernel

MIN_SINGLE_PRODUCT = 1e-30
"""Below this a product of single precision may have lost its digits."""
MAX_SINGLE_SQUARE = 1e30
"""Squared lengths that are larger do not fit into products of single precision."""

Singles = NDArray[np.float32]
Places = NDArray[np.int32]


@inner
def square(a: Vector, b: Vector) -> float:
    """‖a − b‖², in four sums, which the processor adds at the same time."""
    whole = a.size // 4 * 4
    first = two = three = four = 0.0
    for j in range(0, whole, 4):
        first += (a[j] - b[j]) * (a[j] - b[j])
        two += (a[j + 1] - b[j + 1]) * (a[j + 1] - b[j + 1])
        three += (a[j + 2] - b[j + 2]) * (a[j + 2] - b[j + 2])
        four += (a[j + 3] - b[j + 3]) * (a[j + 3] - b[j + 3])
    for j in range(whole, a.size):
        first += (a[j] - b[j]) * (a[j] - b[j])
    return (first + two) + (three + four)


@inner
def closest(row: Vector, centres: Matrix) -> tuple[int, float, float]:
    """The nearest centre, the first one on a tie, and the squared distances to it and to the next."""
    return closest_beside(row, centres, -1, 0.0)


@inner
def closest_beside(row: Vector, centres: Matrix, label: int, own_square: float) -> tuple[int, float, float]:
    """The same as `closest`, with the squared distance `own_square` to the centre `label` known before; -1: to none."""
    place, best, other = 0, np.inf, np.inf
    for c in range(centres.shape[0]):
        far = own_square if c == label else square(row, centres[c])
        if far < best:
            place, other, best = c, best, far
        elif far < other:
            other = far
    return place, best, other


@inner
def doubt_of(second: float, length: float, rounding: float) -> float:
    """Largest error of the two lowest scores, where `second` is the higher of them; `length` is ‖x − origin‖².

    A centre at distance D has a length of at most ‖x‖ + D, which bounds the rounding of its product: the error is
    within (d + 8) u (‖x‖‖c‖ + ‖c‖²) ≤ (d + 8) u (6.5 ‖x‖² + 6 s) with D² = ‖x‖² + 2 s.
    """
    return rounding * (7 * length + 6 * max(second, 0.0)) + MIN_SINGLE_PRODUCT


@kernel("void(f8[:,::1], f8[:,::1], i8[::1], f8[::1])", writes=["squares"])
def squares_to(x: Matrix, centres: Matrix, labels: Labels, squares: Vector) -> None:
    """Squared distance of each row of x (n, d) to its centre, by difference."""
    for i in range(x.shape[0]):
        squares[i] = square(x[i], centres[labels[i]])


@kernel("void(f8[:,::1], f8[:,::1], i8[::1], f8[::1], f8[::1])", writes=["labels", "squares", "others"])
def compare(x: Matrix, centres: Matrix, labels: Labels, squares: Vector, others: Vector) -> None:
    """The nearest centre of each row, and the squared distances to it and to the next, by difference."""
    for i in range(x.shape[0]):
        labels[i], squares[i], others[i] = closest(x[i], centres)


@kernel("void(f8[:,::1], f8[::1], f8, f8[::1])", writes=["lengths"])
def measure(x: Matrix, origin: Vector, unit: float, lengths: Vector) -> None:
    """Squared lengths of the rows less the origin, times `unit`; infinite where single precision does not hold them."""
    for i in range(x.shape[0]):
        length = square(x[i], origin) * unit * unit
        lengths[i] = length if length < MAX_SINGLE_SQUARE else np.inf


@kernel("void(f8[:,::1], i8[::1], f8[::1], f8, f4[:,::1])", writes=["moved"])
def shift(x: Matrix, rows: Labels, origin: Vector, unit: float, moved: Singles) -> None:
    """The listed rows less the origin, times `unit`, in single precision."""
    for t in range(rows.size):
        i = rows[t]
        for j in range(x.shape[1]):
            moved[t, j] = (x[i, j] - origin[j]) * unit


@kernel("void(f4[:,::1], f4[::1], i4[::1], f4[::1], f4[::1])", writes=["places", "first", "second"])
def two_lowest(products: Singles, halves: Singles, places: Places, first: Singles, second: Singles) -> None:
    """The two lowest of `halves[c] - products[c, i]` for each i, products (k, n), and which c has the lowest."""
    places[:] = 0
    first[:] = np.inf
    second[:] = np.inf
    for c in range(products.shape[0]):
        half, number = halves[c], np.int32(c)
        for i in range(products.shape[1]):
            score = half - products[c, i]
            best = first[i]
            lower = score < best
            other = best if lower else score
            second[i] = min(second[i], other)
            places[i] = number if lower else places[i]
            first[i] = score if lower else best


CANCELLATION_SHARE = 1e-8
"""Share of the squared lengths below which a squared distance by products has lost digits."""


@kernel("void(f8[:,::1], f8[:,::1], f8[::1], i8, b1, f8[:,::1])", writes=["squares"])
def from_products(products: Matrix, points: Matrix, lengths: Vector, start: int, root: bool, squares: Matrix) -> None:
    """Squared distances of the points start, start + 1, … to all (b, n), or their roots, from inner products (b, n).

    lengths: (n,) squared. Close points are compared by difference.
    """
    for t in range(products.shape[0]):
        own_length = lengths[start + t]
        for i in range(lengths.size):
            squares[t, i] = own_length + lengths[i] - 2 * products[t, i]
        for i in range(lengths.size):
            if squares[t, i] <= CANCELLATION_SHARE * (own_length + lengths[i]):
                squares[t, i] = square(points[start + t], points[i])
        if root:
            for i in range(lengths.size):
                squares[t, i] = math.sqrt(squares[t, i])


@kernel("void(f8[:,::1], i8[::1], f8[:,::1], i4[::1], f4[::1], f4[::1], f8[::1], f8, i8[::1])", writes=["labels"])
def decide(
    x: Matrix,
    rows: Labels,
    centres: Matrix,
    places: Places,
    first: Singles,
    second: Singles,
    lengths: Vector,
    rounding: float,
    labels: Labels,
) -> None:
    """Label the listed rows by their lowest scores; where scores may tie, by differences."""
    for t in range(rows.size):
        i, nearest, two = rows[t], np.float64(first[t]), np.float64(second[t])
        labels[i] = places[t]
        if not two - nearest > 2 * doubt_of(two, lengths[i], rounding):
            labels[i] = closest(x[i], centres)[0]
