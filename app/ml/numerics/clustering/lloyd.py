"""Lloyd's algorithm: assign every row to the nearest centre, move every centre to the mean of its rows, repeat.

References: Lloyd (1982), IEEE Trans. Inf. Theory 28:129; MacQueen (1967), Berkeley Symp. 1:281.
"""

from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.clustering.bounds import Clusters, Rows, sweep
from app.ml.numerics.neighbours.compiled.distances import squares_to
from app.ml.numerics.neighbours.distances import norms

MIN_MASS = np.finfo(float).tiny


class Run(NamedTuple):
    centres: Matrix
    labels: Labels
    """(n,) nearest centre of each row."""
    squares: Vector
    """(n,) squared distance to it."""
    inertia: list[float]
    """Weighted sum of the squares, from the first centres on; never rises."""
    converged: bool


def lloyd(x: Matrix, weights: Vector, centres: Matrix, max_iter: int) -> Run:
    """From the given centres (k, d) until no row changes sides, or `max_iter` moves of the centres.

    A centre that loses all its rows takes over the row that is farthest from its own centre, which cannot raise
    the inertia. If there is no row left to take over (fewer than k distinct rows), the centre is dropped.
    """
    centres = np.ascontiguousarray(centres)
    rows = Rows(x, weights, centres)
    clusters = Clusters.of(x, weights, rows.labels, len(centres))
    sweep(rows, clusters, centres, np.zeros(len(centres)))
    descent = _Descent(rows, clusters, centres, float(weights @ _squares(rows, centres)), settled=False)
    curve = [descent.inertia]
    while not descent.settled and len(curve) <= max_iter:
        descent = _moved(descent) if descent.clusters.sizes.all() else _refilled(descent)
        curve.append(descent.inertia)
    squares = _squares(descent.rows, descent.centres)
    inertia = min(float(weights @ squares), curve[0])
    curve = [*np.maximum(np.minimum.accumulate(curve[:-1]), inertia).tolist(), inertia]
    return Run(descent.centres, descent.rows.labels, squares, curve, descent.settled)


class _Descent(NamedTuple):
    rows: Rows
    clusters: Clusters
    centres: Matrix
    inertia: float
    settled: bool
    """No row changed sides after the last move."""


def _moved(descent: _Descent) -> _Descent:
    """After a move of the centres to the means of their rows, which a second one makes exact if no row follows: sums
    that rows have left and entered are less exact. Every centre has rows.
    """
    rows, clusters, last, inertia, _ = descent
    centres = clusters.sums / clusters.masses[:, None]
    squares = norms(centres - last)
    moved = inertia - float(clusters.masses @ squares)
    swept = sweep(rows, clusters, centres, np.sqrt(squares))
    moved -= swept.fall
    if not swept.changed:
        last, centres = centres, means(rows.x, rows.weights, rows.labels, len(centres))
        swept = sweep(rows, clusters, centres, np.sqrt(norms(centres - last)))
    settled = not swept.changed or moved >= inertia  # a tie that rounding would toss for ever
    return _Descent(rows, clusters, centres, moved, settled and bool(clusters.sizes.all()))


def _refilled(descent: _Descent) -> _Descent:
    """After centres without rows have taken over rows, or are dropped; all rows are compared anew."""
    rows, _, centres, _, _ = descent
    labels, k = fill_empty(rows.labels, rows.weights * _squares(rows, centres), len(centres))
    centres = means(rows.x, rows.weights, labels, k)
    rows.begin(labels, k)
    clusters = Clusters.of(rows.x, rows.weights, labels, k)
    sweep(rows, clusters, centres, np.zeros(k))
    return _Descent(rows, clusters, centres, float(rows.weights @ _squares(rows, centres)), settled=False)


def _squares(rows: Rows, centres: Matrix) -> Vector:
    squares = np.empty(len(rows.x))
    squares_to.lean(rows.x, centres, rows.labels, squares)
    return squares


def means(x: Matrix, weights: Vector, labels: Labels, k: int) -> Matrix:
    """Weighted mean of the rows of each label 0 … k-1, shape (k, d). Zeros of a label without rows."""
    clusters = Clusters.of(x, weights, labels, k)
    return clusters.sums / np.maximum(clusters.masses, MIN_MASS)[:, None]


def fill_empty(labels: Labels, costs: Vector, k: int) -> tuple[Labels, int]:
    """Give each label without rows the costliest row of a label that has others; drop labels for which there is none.

    Returns labels (n,), numbered without holes, and how many of them there are.
    """
    sizes = np.bincount(labels, minlength=k)
    if sizes.all():
        return labels, k
    labels, costs = labels.copy(), costs.copy()
    for label in np.flatnonzero(sizes == 0):
        row = int(np.where(sizes[labels] > 1, costs, 0.0).argmax())
        if sizes[labels[row]] > 1 and costs[row] > 0:
            sizes[labels[row]] -= 1
            labels[row], sizes[label], costs[row] = label, 1, 0.0
    filled = sizes > 0
    return (np.cumsum(filled) - 1)[labels], int(filled.sum())
