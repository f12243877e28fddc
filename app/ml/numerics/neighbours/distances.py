"""Squared Euclidean distances, by matrix product for speed and by difference where that would lose digits.

‖x − c‖² = ‖x‖² − 2x·c + ‖c‖² costs one product, but cancels when points are close compared to their
distance from the origin. So the origin is first moved among the points, and whatever still comes out within rounding
of a tie (or of zero) is computed again from the differences. The nearest centre is found by products of single
precision, and has the same label as by differences of double precision.
"""

from collections.abc import Iterator
from typing import NamedTuple, Self

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.neighbours.compiled.distances import (
    Places,
    Singles,
    compare,
    decide,
    measure,
    shift,
    squares_to,
    two_lowest,
)
from app.ml.numerics.neighbours.compiled.tiles import label_by_tiles

BLOCK = 2**17
"""Numbers worked on at a time: a block of x and its distances stay in the processor's cache."""
quiet = np.errstate(over="ignore", invalid="ignore")
"""Decorates what computes products of single precision, where large numbers do not fit; `doubt_of` finds them."""
NARROW = 64
"""Columns up to which tiles of rows are compared sooner than matrix products are stored."""
MAX_DIRECT_CELLS = 2**15
"""Differences of so many numbers are computed sooner than products are prepared."""


def squared_distances(x: Matrix, centres: Matrix) -> Matrix:
    """All of them, shape (n, k): zero for equal points, and to 1e-8 relative for close ones."""
    origin = centres.mean(axis=0)
    a, b = x - origin, centres - origin
    scale = norms(a)[:, None] + norms(b)
    squares: Matrix = scale - 2 * (a @ b.T)
    row, column = np.nonzero(squares <= 1e-8 * scale)
    squares[row, column] = norms(x[row] - centres[column])
    return squares


def nearest(x: Matrix, centres: Matrix) -> tuple[Labels, Vector]:
    """For each row the nearest centre, the lowest one on a tie, and the squared distance to it: both (n,).

    Needs O(n) memory besides a block, and never forms the (n, k) matrix.
    """
    labels, squares = nearest_labels(x, centres), np.empty(len(x))
    squares_to(np.ascontiguousarray(x), np.ascontiguousarray(centres), labels, squares)
    return labels, squares


def nearest_labels(x: Matrix, centres: Matrix) -> Labels:
    """Labels as of `nearest`, without the distances."""
    x, centres, labels = np.ascontiguousarray(x), np.ascontiguousarray(centres), np.empty(len(x), np.intp)
    if x.size * len(centres) <= MAX_DIRECT_CELLS:
        compare(x, centres, labels, *np.empty((2, len(x))))
        return labels
    _label_by_products(x, centres, labels)
    return labels


@quiet
def _label_by_products(x: Matrix, centres: Matrix, labels: Labels) -> None:
    frame = Frame.of(centres)
    rounded = Rounded.of(frame, centres)
    if x.shape[1] <= NARROW:
        label_by_tiles.lean(x, centres, frame.origin, frame.unit, *rounded, labels)
        return
    scores, lengths, rows = Scores(frame, rounded, len(x)), frame.lengths(x), np.arange(len(x))
    for block in scores.blocks(len(x)):
        decide.lean(x, rows[block], centres, *scores.lowest(x, rows[block]), lengths, rounded.rounding, labels)


class Frame(NamedTuple):
    """Origin and unit of numbers in single precision. The origin is among most points, whatever a few do."""

    origin: Vector
    unit: float
    """A power of two, by which the largest of the points is about 1; 0 where they are too large for squares."""

    @classmethod
    def of(cls, points: Matrix) -> Self:
        with np.errstate(over="ignore", invalid="ignore"):
            origin = np.sort(points, axis=0)[len(points) // 2]
            largest = np.abs(points - origin).max(initial=0.0)
        if not largest < 1e150:
            return cls(np.zeros_like(origin), 0.0)
        return cls(origin, float(2.0 ** -np.ceil(np.log2(max(largest, 1e-150)))))

    def lengths(self, x: Matrix) -> Vector:
        """(n,) squared lengths of the rows less the origin, times the unit."""
        lengths = np.empty(len(x))
        measure.lean(x, self.origin, self.unit, lengths)
        return lengths


class Rounded(NamedTuple):
    """Centres in a frame, in single precision."""

    points: Singles
    """(k, d)"""
    halves: Singles
    """(k,) half their squared lengths."""
    rounding: float
    """Largest relative error of a score."""

    @classmethod
    def of(cls, frame: Frame, centres: Matrix) -> Self:
        moved = (centres - frame.origin) * frame.unit
        halves = norms(moved) / 2
        return cls(moved.astype(np.float32), halves.astype(np.float32), 2.0**-24 * (centres.shape[1] + 8))


class Scores:
    """Half the squared distance to each centre, less half of ‖x − origin‖², of a block of rows at a time."""

    def __init__(self, frame: Frame, centres: Rounded, rows: int) -> None:
        k, d = centres.points.shape
        self._frame, self._centres = frame, centres
        self._step = max(1, min(rows, BLOCK // (k + 2 * d)))
        self._moved, self._products = np.empty((self._step, d), np.float32), np.empty(self._step * k, np.float32)
        self._places, self._numbers = np.empty(self._step, np.int32), np.empty((2, self._step), np.float32)

    def blocks(self, rows: int) -> Iterator[slice]:
        """The rows 0 … rows - 1, in blocks whose scores stay in the processor's cache."""
        return (slice(start, min(start + self._step, rows)) for start in range(0, rows, self._step))

    def lowest(self, x: Matrix, rows: Labels) -> "Lowest":
        """The two lowest scores of each of these rows (m,) of x, at most a block; they stand until the next call."""
        m, k = len(rows), len(self._centres.points)
        moved, products = self._moved[:m], self._products[: m * k].reshape(k, m)
        places, (first, second) = self._places[:m], self._numbers[:, :m]
        shift.lean(x, rows, *self._frame, moved)
        np.matmul(self._centres.points, moved.T, out=products)
        two_lowest.lean(products, self._centres.halves, places, first, second)
        return Lowest(places, first, second)


class Lowest(NamedTuple):
    places: Places
    """(m,) centre of the lowest score."""
    first: Singles
    second: Singles
    """(m,) the two lowest scores; the second is infinite where there is one centre."""


def norms(rows: Matrix) -> Vector:
    """Squared length of each row."""
    squares: Vector = np.einsum("ij,ij->i", rows, rows)
    return squares
