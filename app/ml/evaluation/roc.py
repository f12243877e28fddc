"""Ranking quality of a score: the ROC curve and the area under it, exact for tied scores (LION 11.7)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Vector
from app.ml.evaluation.splits import evenly
from app.ml.statistics.intervals import ratio


class Steps(NamedTuple):
    """Positive and negative rows by distinct score, lowest first."""

    positive: NDArray[np.bool_]
    """(n,)"""
    group: NDArray[np.intp]
    """(n,) which distinct score each row has."""
    positives: Vector
    """(g,) weight of the positive rows at each score."""
    negatives: Vector


def steps(scores: Vector, positive: NDArray[np.bool_], weights: Vector | None = None) -> Steps:
    """Sort the scores (n,) of positive and negative rows."""
    distinct, group = np.unique(scores, return_inverse=True)
    w = np.ones(scores.size) if weights is None else weights
    up, down = (np.bincount(group[side], w[side], distinct.size).astype(np.float64) for side in (positive, ~positive))
    return Steps(positive, group, up, down)


def placements(ranked: Steps) -> Vector:
    """Placement of each row: the share of rows of the other kind on its right side, ties counting half.

    The mean over the positives, and that over the negatives, is the area under the curve,
    P(score of a positive > score of a negative). NaN if there are no rows of the other kind.
    """
    positive, group, up, down = ranked
    below = np.cumsum(down) - down / 2
    above = up.sum() - np.cumsum(up) + up / 2
    return np.where(positive, ratio(below, down.sum())[group], ratio(above, up.sum())[group])


def curve(ranked: Steps, *, most: int = 201) -> tuple[Vector, Vector]:
    """False and true positive rates from (0, 0) to (1, 1) as the threshold falls; at most `most` points.

    Points on a straight segment are left out. Both empty if one kind of row is missing.
    """
    up, down = ranked.positives, ranked.negatives
    if not up.sum() or not down.sum():
        return np.zeros(0), np.zeros(0)
    x, y = (np.concatenate(([0.0], np.cumsum(kind[::-1]))) for kind in (down, up))
    turns = np.diff(x)[:-1] * np.diff(y)[1:] != np.diff(x)[1:] * np.diff(y)[:-1]
    corners = np.flatnonzero(np.concatenate(([True], turns, [True])))
    corners = corners[evenly(corners.size, most)]
    return x[corners] / x[-1], y[corners] / y[-1]
