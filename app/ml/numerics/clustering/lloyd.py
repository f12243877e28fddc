"""Lloyd's algorithm: assign every row to the nearest centre, move every centre to the mean of its rows, repeat.

References: Lloyd (1982), IEEE Trans. Inf. Theory 28:129; MacQueen (1967), Berkeley Symp. 1:281.
"""

from typing import NamedTuple

import numpy as np
import scipy

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.clustering.bounds import Clusters, Rows, sweep
from app.ml.numerics.neighbours.distances import nearest, norms


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
    labels, squares = nearest(x, centres)
    run = Run(centres, labels, squares, [float(weights @ squares)], converged=False)
    while not run.converged and len(run.inertia) <= max_iter:
        filled, k = fill_empty(run.labels, weights * run.squares, len(run.centres))
        last = run.inertia[-1]
        moves = _descend(x, weights, filled, k, max_iter + 1 - len(run.inertia))
        labels, squares = nearest(x, moves.centres)
        settled = moves.settled and bool(np.array_equal(labels, moves.labels))
        inertia = min(float(weights @ squares), last)
        tossed = k == len(run.centres) and inertia >= last  # a tie that rounding would toss for ever
        curve = [*run.inertia, *np.clip(moves.inertia[:-1], inertia, last), inertia]
        run = Run(moves.centres, labels, squares, curve, settled or tossed)
    return run


class _Moves(NamedTuple):
    centres: Matrix
    labels: Labels
    """(n,) nearest of the centres, as far as bounds decide."""
    inertia: list[float]
    """After each move."""
    settled: bool
    """No row changed sides after the last move."""


def _descend(x: Matrix, weights: Vector, labels: Labels, k: int, max_moves: int) -> _Moves:
    """Move the centres until no row changes sides, a centre loses all its rows, or `max_moves` times."""
    centres = means(x, weights, labels, k)
    rows = Rows(x, weights, labels.copy(), np.full(len(x), np.inf), np.zeros(len(x)))
    sizes, masses = np.bincount(labels, minlength=k), np.bincount(labels, weights, k).astype(np.float64)
    clusters = Clusters(centres * masses[:, None], masses, sizes)
    swept = sweep(rows, clusters, centres, np.zeros(k))
    inertia = [float(weights @ rows.upper**2)]
    while swept.changed and len(inertia) < max_moves and clusters.sizes.all():
        last, centres = centres, clusters.sums / clusters.masses[:, None]
        squares = norms(centres - last)
        moved = inertia[-1] - float(clusters.masses @ squares)
        swept = sweep(rows, clusters, centres, np.sqrt(squares))
        inertia.append(moved - swept.fall)
        if inertia[-1] >= inertia[-2]:  # a tie that rounding would toss for ever
            break
    if not swept.changed:
        centres = means(x, weights, rows.labels, k)  # sums that rows have left and entered are less exact
    return _Moves(centres, rows.labels, inertia, not swept.changed)


def means(x: Matrix, weights: Vector, labels: Labels, k: int) -> Matrix:
    """Weighted mean of the rows of each label 0 … k-1, shape (k, d). Each label must have a row."""
    members = scipy.sparse.csc_array((weights, labels, np.arange(len(x) + 1)), shape=(k, len(x)))
    return np.asarray(members @ x) / np.bincount(labels, weights, k)[:, None]


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
    kept = sizes > 0
    return (np.cumsum(kept) - 1)[labels], int(kept.sum())
