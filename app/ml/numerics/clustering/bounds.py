"""Bounds on the distances of rows to centres: a row whose bounds part cannot have changed sides.

For each row an upper bound of the distance to its own centre and a lower bound of that to any other are kept. When
centres move, the bounds move with them; a row is compared with all centres only where the upper bound reaches the lower
one and half the distance of its centre to the next. The labels are those of comparing everything.

Bounds are widened by what rounding may have taken from them.

Reference: Hamerly (2010), SIAM Data Mining: 130.
"""

from typing import NamedTuple, Self

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.clustering.compiled.bounds import (
    ROUNDING,
    SECTION,
    add_rows,
    compare_all,
    compare_by_tiles,
    compare_undecided,
    half_gaps,
    settle,
    undecided,
)
from app.ml.numerics.neighbours.distances import FEW, NARROW, Frame, Rounded, Scores, quiet, squared_distances

FEW_CENTRES = 4
"""Centres up to which a row is compared with all of them sooner by difference than by products."""
MANY = 512
"""Centres whose distances are computed sooner by a product."""


class Rows(NamedTuple):
    """Rows, and for each of them its centre and its bounds."""

    x: Matrix
    weights: Vector
    labels: Labels
    upper: Vector
    lower: Vector
    lengths: Vector
    """Squared lengths in the frame."""
    frame: Frame

    @classmethod
    def of(cls, x: Matrix, weights: Vector, centres: Matrix) -> Self:
        """Rows of the first centre, with bounds that decide nothing."""
        frame, n = Frame.of(centres), len(x)
        return cls(x, weights, np.zeros(n, np.intp), np.full(n, np.inf), np.zeros(n), frame.lengths(x), frame)


class Clusters(NamedTuple):
    sums: Matrix
    """(k, d) weighted sum of the rows of each."""
    masses: Vector
    """(k,) sum of the weights."""
    sizes: Labels
    """(k,) number of rows."""

    @classmethod
    def of(cls, x: Matrix, weights: Vector, labels: Labels, k: int) -> Self:
        found = cls(np.zeros((k, x.shape[1])), np.zeros(k), np.zeros(k, np.intp))
        add_rows(np.ascontiguousarray(x), weights, labels, *found)
        return found


class Sweep(NamedTuple):
    changed: int
    """Rows that have a new centre."""
    fall: float
    """Decrease of the inertia by them."""


@quiet
def sweep(rows: Rows, clusters: Clusters, centres: Matrix, moved: Vector) -> Sweep:
    """Give each row its nearest centre, after each centre has moved by `moved` (k,).

    An infinite upper bound makes sure that a row is compared.
    """
    x, weights, labels, upper, lower, lengths, frame = rows
    if x.size * len(centres) <= FEW:
        return Sweep(*compare_all.lean(*rows[:5], *clusters, centres))
    slack = 1 + ROUNDING * (centres.shape[1] + 8)
    steps = (centres, moved * slack, _of_others(moved) * slack, _half_gaps(centres), slack)
    if len(centres) <= FEW_CENTRES:
        return Sweep(*compare_undecided.lean(*rows[:5], *clusters, *steps))
    rounded = Rounded.of(frame, centres)
    if x.shape[1] <= NARROW:
        single = rounded.points, rounded.halves, rounded.rounding
        return Sweep(*compare_by_tiles.lean(*rows[:5], *clusters, *steps, lengths, frame.origin, frame.unit, *single))
    scores = Scores(frame, rounded, len(x))
    room, squares = np.empty(min(len(x), SECTION), np.intp), np.empty(min(len(x), SECTION))
    changed, fall = 0, 0.0
    for start in range(0, len(x), SECTION):
        stop = min(start + SECTION, len(x))
        found = undecided.lean(x, labels, upper, lower, start, stop, *steps, room, squares)
        for block in scores.blocks(found):
            to = (x, weights, labels, upper, lower, room[block], squares[block], *clusters, centres)
            lowest = scores.lowest(x, room[block])
            more, less = settle.lean(*to, *lowest, lengths, frame.unit, rounded.rounding, slack)
            changed, fall = changed + more, fall + less
    return Sweep(changed, fall)


def _of_others(moved: Vector) -> Vector:
    """The largest move of any centre but this one."""
    order = np.argsort(moved)
    others = np.full(len(moved), moved[order[-1]])
    others[order[-1]] = moved[order[-2]] if len(moved) > 1 else 0.0
    return others


def _half_gaps(centres: Matrix) -> Vector:
    """Half the distance of each centre to the next, at most."""
    gaps = np.empty(len(centres))
    if len(centres) <= MANY:
        half_gaps.lean(centres, gaps)
        return gaps * (1 - 1e-7)
    for start in range(0, len(centres), 256):
        block = squared_distances(centres[start : start + 256], centres)
        block[np.arange(len(block)), start + np.arange(len(block))] = np.inf
        gaps[start : start + 256] = np.sqrt(block.min(axis=1)) / 2
    return gaps * (1 - 1e-7)
