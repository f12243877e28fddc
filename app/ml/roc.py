"""Ranking quality of a score: the ROC curve and the area under it, exact for tied scores (E17)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract import Vector
from app.ml.intervals import ratio


class Steps(NamedTuple):
    """Rows by distinct score, lowest first."""

    group: NDArray[np.intp]
    """(n,) which distinct score each row has."""
    positives: Vector
    """(g,) positive rows at each score."""
    negatives: Vector


def steps(scores: Vector, positive: NDArray[np.bool_], weights: Vector | None = None) -> Steps:
    """Sort the scores (n,) of positive and negative rows."""
    distinct, group = np.unique(scores, return_inverse=True)
    w = np.ones(scores.size) if weights is None else weights
    up, down = (np.bincount(group[side], w[side], distinct.size).astype(np.float64) for side in (positive, ~positive))
    return Steps(group, up, down)


def placements(scores: Vector, positive: NDArray[np.bool_], weights: Vector | None = None) -> Vector:
    """How well each row is placed: the share of rows of the other kind on its right side, ties counting half.

    The mean over the positives, and that over the negatives, is the area under the curve,
    P(score of a positive > score of a negative). NaN if there are no rows of the other kind.
    """
    group, up, down = steps(scores, positive, weights)
    below = np.cumsum(down) - down / 2
    above = up.sum() - np.cumsum(up) + up / 2
    return np.where(positive, ratio(below, down.sum())[group], ratio(above, up.sum())[group])


def curve(
    scores: Vector, positive: NDArray[np.bool_], weights: Vector | None = None, *, most: int = 201
) -> tuple[Vector, Vector]:
    """False and true positive rates from (0, 0) to (1, 1) as the threshold falls; at most `most` points.

    Points on a straight piece are left out. Both empty if one kind of row is missing.
    """
    _, up, down = steps(scores, positive, weights)
    if not up.sum() or not down.sum():
        return np.zeros(0), np.zeros(0)
    x, y = (np.concatenate(([0.0], np.cumsum(kind[::-1]))) for kind in (down, up))
    turns = np.diff(x)[:-1] * np.diff(y)[1:] != np.diff(x)[1:] * np.diff(y)[:-1]
    corners = np.flatnonzero(np.concatenate(([True], turns, [True])))
    if corners.size > most:
        corners = corners[np.linspace(0, corners.size - 1, most).round().astype(np.intp)]
    return x[corners] / x[-1], y[corners] / y[-1]
