r"""SMACOF: places in a plane, or in p dimensions, whose distances differ little from given dissimilarities.

The stress  σ(X) = Σ wᵢⱼ(δᵢⱼ − ‖xᵢ − xⱼ‖)²  over the known pairs i < j, here with wᵢⱼ = wᵢwⱼpᵢⱼ of weights of rows and
of pairs, is never above a quadratic function that touches it at the present places, with its lowest point at  X̄ =
V⁺B(X)X  (the Guttman transform). So neither a step to X̄ nor one twice as long raises the stress. The long one is
nearly twice as fast but leaves errors of scale as large as they are, so that every fourth step is a short one. With
every pair known and of weight 1, V⁺ is a division; else V is factorised once.

References: de Leeuw & Heiser (1980), Multivariate Analysis V: 501; Borg & Groenen (2005), Modern Multidimensional
Scaling, ch. 8.
"""

from typing import NamedTuple

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.linear_algebra.solve import EPS
from app.ml.numerics.maps.compiled.stress_pulls import pull

ROUND = 4
"""Steps of which the last is short."""
EXACT = 1e-26
"""Share of the squared dissimilarities below which the stress is rounding."""


class Majorised(NamedTuple):
    """One start, as it ended."""

    places: Matrix
    """(n, p)"""
    stress: list[float]
    """At the start and after each step; it never rises."""
    converged: bool


class KnownPairs:
    """Dissimilarities (n, n) between n items, NaN where unknown, and what does not change from step to step."""

    def __init__(self, distances: Matrix, weights: Vector, pairs: Matrix | None = None) -> None:
        """weights: (n,), above 0. pairs: (n, n) weights of pairs, above 0 where known; None: 1. The known pairs connect
        all items.
        """
        heaviest, pair = float(weights.max()), 1.0 if pairs is None else float(pairs.max()) or 1.0
        self.given, self.weights, self.n = distances, weights / heaviest, len(weights)
        self.unit = heaviest * heaviest * pair
        """By which sums over pairs are to be multiplied."""
        self._pairs = np.empty((0, 0)) if pairs is None else pairs / pair
        self._far, self._stress = np.empty((2, self.n))
        alike = pairs is None and not np.isnan(distances).any()
        self._factor = None if alike else _factorised(distances, self.weights, self._pairs)

    @property
    def squares(self) -> float:
        """Σ wᵢⱼδᵢⱼ² over the known pairs."""
        return float(self._pulled(np.zeros((1, self.n)))[0])

    def stress(self, places: Matrix) -> float:
        """places: (n, p)."""
        return self._pulled(np.ascontiguousarray(places.T))[0]

    def squared_distances(self, places: Matrix) -> float:
        """Σ wᵢⱼdᵢⱼ² over the known pairs, of places (n, p)."""
        stress, pulls = self._pulled(np.ascontiguousarray(places.T))
        return max(0.0, stress - self.squares + 2 * float(np.vdot(places.T, pulls)))

    def majorised(self, start: Matrix, tol: float, max_iter: int) -> Majorised:
        """Steps from these places (n, p), until a round of steps lowers the stress by no more than this share each."""
        here, exact = np.ascontiguousarray(start.T), EXACT * self.squares
        stress, pulls = self._pulled(here)
        curve, before = [stress], stress
        for step in range(1, max_iter + 1):
            if stress <= exact:
                return Majorised(here.T, curve, converged=True)
            short = self._transformed(pulls)
            there = short if step % ROUND == 0 else 2 * short - here
            lower, pulls = self._pulled(there)
            if lower > stress:  # by rounding
                return Majorised(here.T, curve, converged=True)
            here, stress = there, lower
            curve.append(stress)
            if step % ROUND == 0:
                if before - stress <= ROUND * tol * before:
                    return Majorised(here.T, curve, converged=True)
                before = stress
        return Majorised(here.T, curve, converged=stress <= exact)

    def _pulled(self, places: Matrix) -> tuple[float, Matrix]:
        pulls = np.empty_like(places)
        pull(self.given, places, self.weights, self._pairs, self._far, self._stress, pulls)
        return float(self._stress.sum()), pulls

    def _transformed(self, pulls: Matrix) -> Matrix:
        """V⁺ times the pulls (p, n), about the weighted mean."""
        total = self.weights.sum()
        if self._factor is None:
            return np.asarray(pulls / (self.weights * total))
        scale, factor = self._factor
        transformed: Matrix = scipy.linalg.cho_solve(factor, (pulls / scale).T, check_finite=False).T / scale
        return np.ascontiguousarray(transformed - (transformed @ self.weights / total)[:, None])


def _factorised(distances: Matrix, weights: Vector, pairs: Matrix) -> tuple[Vector, tuple[Matrix, bool]]:
    """Roots s of the diagonal of V, and a factor of V/(ssᵀ) made definite along s, to which pulls are orthogonal."""
    matrix = np.where(np.isnan(distances), 0.0, -np.outer(weights, weights))
    if pairs.size:
        matrix *= pairs
    np.fill_diagonal(matrix, 0.0)
    scale = np.sqrt(-matrix.sum(axis=1))
    matrix /= scale
    matrix /= scale[:, None]
    matrix += np.outer(scale, scale) / (scale @ scale)
    matrix[np.diag_indices_from(matrix)] += 1 + len(distances) * EPS
    return scale, scipy.linalg.cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
