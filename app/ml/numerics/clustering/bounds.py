"""Bounds on the distances of rows to centres: a row whose bounds part cannot have changed sides.

For each row an upper bound of the distance to its own centre and a lower bound of that to any other are kept. When
centres move, the bounds move with them; a row is compared with all centres only where the upper bound reaches the lower
one and half the distance of its centre to the next. The labels are those of comparing everything.

Bounds are widened by what rounding may have taken from them.

Reference: Hamerly (2010), SIAM Data Mining: 130.
"""

from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.clustering.compiled.bounds import ROUNDING, settle, undecided
from app.ml.numerics.neighbours.distances import Scores, squared_distances

SECTION = 2**14
"""Rows whose bounds are looked at in one go, while what is read of them is in the cache."""


class Rows(NamedTuple):
    """Rows, and for each of them its centre and its bounds."""

    x: Matrix
    weights: Vector
    labels: Labels
    upper: Vector
    lower: Vector


class Clusters(NamedTuple):
    sums: Matrix
    """(k, d) weighted sum of the rows of each."""
    masses: Vector
    """(k,) sum of the weights."""
    sizes: Labels
    """(k,) number of rows."""


class Sweep(NamedTuple):
    changed: int
    """Rows that have a new centre."""
    fall: float
    """Decrease of the inertia by them."""


def sweep(rows: Rows, clusters: Clusters, centres: Matrix, moved: Vector) -> Sweep:
    """Give each row its nearest centre, after each centre has moved by `moved` (k,).

    An infinite upper bound makes sure that a row is compared.
    """
    slack = 1 + ROUNDING * (centres.shape[1] + 8)
    order = np.argsort(moved)
    others = np.full(len(moved), moved[order[-1]])
    others[order[-1]] = moved[order[-2]] if len(moved) > 1 else 0.0
    steps = (centres, moved * slack, others * slack, _half_gaps(centres), slack)
    scores, room = Scores(centres, len(rows.x)), np.empty(len(rows.x), np.intp)
    changed, fall = 0, 0.0
    for start in range(0, len(rows.x), SECTION):
        stop = min(start + SECTION, len(rows.x))
        found = undecided.lean(rows.x, rows.labels, rows.upper, rows.lower, start, stop, *steps, room)
        for block in scores.blocks(found):
            places, first, second, lengths, doubt = scores.lowest(rows.x, room[block])
            to = (*rows, room[block], *clusters, centres)
            more, less = settle.lean(*to, places, first, second, lengths, doubt, slack)
            changed, fall = changed + more, fall + less
    return Sweep(changed, fall)


def _half_gaps(centres: Matrix) -> Vector:
    """Half the distance of each centre to the next, at most."""
    gaps = np.full(len(centres), np.inf)
    for start in range(0, len(centres), 256):
        block = squared_distances(centres[start : start + 256], centres)
        block[np.arange(len(block)), start + np.arange(len(block))] = np.inf
        gaps[start : start + 256] = np.sqrt(block.min(axis=1)) / 2
    return gaps * (1 - 1e-7)
