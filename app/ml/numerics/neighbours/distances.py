"""Squared Euclidean distances, by matrix product for speed and by difference where that would lose digits.

‖x − c‖² = ‖x‖² − 2x·c + ‖c‖² costs one product, but cancels when points are close compared to their
distance from the origin. So the origin is first moved among the points, and whatever still comes out within rounding
of a tie (or of zero) is computed again from the differences.
"""

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector

BLOCK = 2**17
"""Numbers worked on at a time: a piece of x and its distances stay in the processor's cache."""


def squared_distances(x: Matrix, centres: Matrix) -> Matrix:
    """All of them, shape (n, k): zero for equal points, and to 1e-8 relative for close ones."""
    origin = centres.mean(axis=0)
    a, b = x - origin, centres - origin
    scale = _norms(a)[:, None] + _norms(b)
    squares: Matrix = scale - 2 * (a @ b.T)
    row, column = np.nonzero(squares <= 1e-8 * scale)
    squares[row, column] = _norms(x[row] - centres[column])
    return squares


def nearest(x: Matrix, centres: Matrix) -> tuple[Labels, Vector]:
    """For each row the nearest centre, the lowest one on a tie, and the squared distance to it: both (n,).

    Needs O(n) memory besides a block, and never forms the (n, k) matrix.
    """
    labels, squares = np.empty(len(x), np.intp), np.empty(len(x))
    origin = centres.mean(axis=0)
    moved = centres - origin
    halves = _norms(moved) / 2
    step = max(1, BLOCK // (len(centres) + 2 * x.shape[1]))
    for start in range(0, len(x), step):
        block = slice(start, start + step)
        labels[block] = _nearest(x[block], centres, origin, moved, halves)
        squares[block] = _norms(x[block] - centres[labels[block]])
    return labels, squares


def _nearest(x: Matrix, centres: Matrix, origin: Vector, moved: Matrix, halves: Vector) -> Labels:
    a = x - origin
    scores = halves - a @ moved.T  # half the squared distance, less a constant of the row
    labels: Labels = scores.argmin(axis=1)
    lowest = scores[np.arange(len(x)), labels]
    doubt = 1e-15 * (x.shape[1] + 4) * (_norms(a) + 2 * halves.max())
    tied = np.flatnonzero(np.count_nonzero(scores <= (lowest + doubt)[:, None], axis=1) > 1)
    step = max(1, BLOCK // centres.size)
    for start in range(0, tied.size, step):
        rows = tied[start : start + step]
        labels[rows] = ((x[rows, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    return labels


def _norms(rows: Matrix) -> Vector:
    """Squared length of each row."""
    squares: Vector = np.einsum("ij,ij->i", rows, rows)
    return squares
