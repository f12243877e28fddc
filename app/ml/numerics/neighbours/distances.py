"""Squared Euclidean distances, by matrix product for speed and by difference where that would lose digits.

‖x − c‖² = ‖x‖² − 2x·c + ‖c‖² costs one product, but cancels when points are close compared to their
distance from the origin. So the origin is first moved among the points, and whatever still comes out within rounding
of a tie (or of zero) is computed again from the differences.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.neighbours.compiled.distances import shift, squares_to, two_lowest

BLOCK = 2**17
"""Numbers worked on at a time: a block of x and its distances stay in the processor's cache."""


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
    x, labels = np.ascontiguousarray(x), np.empty(len(x), np.intp)
    scores, rows = Scores(centres, len(x)), np.arange(len(x))
    for block in scores.blocks(len(x)):
        labels[block] = _nearest(x, rows[block], centres, scores)
    return labels


class Scores:
    """Half the squared distance to each centre, less half of ‖x − origin‖², of a block of rows at a time."""

    def __init__(self, centres: Matrix, rows: int) -> None:
        k, d = centres.shape
        self._origin = centres.mean(axis=0)
        self._centres = centres - self._origin
        self._halves = norms(self._centres) / 2
        self._rounding, self._longest = 1e-15 * (d + 4), 2 * float(self._halves.max())
        self._step = max(1, min(rows, BLOCK // (k + 2 * d)))
        self._moved, self._products = np.empty((self._step, d)), np.empty(self._step * k)
        self._places, self._numbers = np.empty(self._step, np.intp), np.empty((4, self._step))

    def blocks(self, rows: int) -> Iterator[slice]:
        """The rows 0 … rows - 1, in blocks whose scores stay in the processor's cache."""
        return (slice(start, min(start + self._step, rows)) for start in range(0, rows, self._step))

    def lowest(self, x: Matrix, rows: Labels) -> "Lowest":
        """The two lowest scores of each of these rows (m,) of x, at most a block; they stand until the next call."""
        m, k = len(rows), len(self._centres)
        moved, products = self._moved[:m], self._products[: m * k].reshape(k, m)
        places, (first, second, lengths, doubt) = self._places[:m], self._numbers[:, :m]
        shift.lean(x, rows, self._origin, self._rounding, self._longest, moved, lengths, doubt)
        np.matmul(self._centres, moved.T, out=products)
        two_lowest.lean(products, self._halves, places, first, second)
        return Lowest(places, first, second, lengths, doubt)


class Lowest(NamedTuple):
    places: Labels
    """(m,) centre of the lowest score."""
    first: Vector
    second: Vector
    """(m,) the two lowest scores; the second is infinite where there is one centre."""
    lengths: Vector
    """(m,) ‖x − origin‖²."""
    doubt: Vector
    """(m,) scores that differ by less than this may be equal."""


def _nearest(x: Matrix, rows: Labels, centres: Matrix, scores: Scores) -> Labels:
    found = scores.lowest(x, rows)
    tied = np.flatnonzero(found.second - found.first <= found.doubt)
    step = max(1, BLOCK // centres.size)
    for start in range(0, tied.size, step):
        some = tied[start : start + step]
        found.places[some] = ((x[rows[some], None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    return found.places


def norms(rows: Matrix) -> Vector:
    """Squared length of each row."""
    squares: Vector = np.einsum("ij,ij->i", rows, rows)
    return squares
