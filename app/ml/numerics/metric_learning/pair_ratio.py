"""A metric from pairs of rows: those that belong together near, those that belong apart far.

The metric A = LᵀL maximises the sum of the distances of pairs that cannot be together, while the sum of the squared
distances of those that must be is held:

    max Σ_cannot v ‖L(xᵢ − xⱼ)‖   with   Σ_must v ‖L(xᵢ − xⱼ)‖² = 1.

Distances, not their squares, are summed for the first, or all would go into one direction. In coordinates in which the
scatter of the pairs that must be together is the unit matrix, the constraint is a sum of squares of L, and is taken up
by the scale: the loss is log ‖L‖ − log Σ v ‖L u‖.

Reference: Xing, Ng, Jordan & Russell (2003), NIPS 15:521.
"""

from typing import NamedTuple, Self

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.contract.relations import Edges
from app.ml.numerics.linear_algebra.whitening import whitening
from app.ml.numerics.neighbours.distances import norms

MIN_DISTANCE_SHARE = 1e-12
"""Distance, relative to the largest, below which a pair has no direction."""


class PairRatio(NamedTuple):
    """Pairs that cannot be together, in coordinates in which those that must be have the unit matrix for a scatter."""

    turn: Matrix
    """(d, r) these coordinates, from the columns; of a full metric, first those with the largest ratio of squares."""
    gaps: Matrix
    """(m, r) differences of the pairs that cannot be together."""
    weights: Vector
    """(m,) their weights, adding up to 1."""

    @classmethod
    def of(cls, x: Matrix, edges: Edges, shrinkage: float, *, diagonal: bool) -> Self:
        """x: (n, d). edges: with signed weights, above 0 for pairs that must be together. diagonal: turn no columns."""
        must = edges.values > 0
        gaps, values = x[edges.first] - x[edges.second], np.abs(edges.values)
        turn, away_values = _turn(gaps[must], values[must], shrinkage, diagonal=diagonal), values[~must]
        shares, away = away_values / (away_values.sum() or 1.0), gaps[~must] @ turn
        if not diagonal:
            _, vectors = scipy.linalg.eigh((away * shares[:, None]).T @ away)
            turn, away = turn @ vectors[:, ::-1], away @ vectors[:, ::-1]
        return cls(turn, away, shares)

    @property
    def any_apart(self) -> bool:
        """True if a pair that cannot be together differs at all: else there is nothing to maximise."""
        return bool(self.gaps.any())

    def loss(self, factor: Matrix) -> tuple[float, Matrix]:
        """Log ‖L‖ − log Σ v ‖L u‖ for L (p, r), and its gradient (p, r)."""
        mapped = self.gaps @ factor.T
        far = np.sqrt(norms(mapped))
        least = MIN_DISTANCE_SHARE * far.max(initial=0.0)
        size, total = float(np.square(factor).sum()), float(self.weights @ far)
        pull = self.weights / np.where(far > least, far, np.inf)
        gradient = (mapped * pull[:, None]).T @ self.gaps
        return float(np.log(size) / 2 - np.log(total)), factor / size - gradient / total

    def scaled(self, factor: Matrix) -> Matrix:
        """(p, d) the factor for the columns, with a mean distance of 1 of the pairs that cannot be together."""
        total = float(self.weights @ np.sqrt(norms(self.gaps @ factor.T)))
        return (factor / (total or 1.0)) @ self.turn.T


def _turn(gaps: Matrix, weights: Vector, shrinkage: float, *, diagonal: bool) -> Matrix:
    """(d, r) with the scatter of these differences (m, d) turned into the unit matrix; columns as they are if there are
    none.
    """
    d = gaps.shape[1]
    if not gaps.any():
        return np.eye(d)
    rows = gaps * np.sqrt(weights / weights.sum())[:, None]
    if not diagonal:
        return whitening(rows, shrinkage)[0]
    squares = np.square(rows).sum(axis=0)
    variance = (1 - shrinkage) * squares + shrinkage * squares.mean()
    varies = variance > 0
    return np.diag(np.where(varies, 1 / np.sqrt(np.where(varies, variance, 1.0)), 0.0))
