"""Metrics of clusters: each measures rows by its own matrix A, which follows the spread of its rows and its pairs.

With the share s = `shrinkage` of the unit matrix, rows in units of the mean variance of the columns, a row of cluster h
costs (1 − s)‖x − c‖²_A + s·tr A − log det A. The matrix that makes the sum over the rows of weight W least, the pairs
left aside, is the inverse of (1 − s)·S/W + s·I, with the scatter S of the rows: their covariance, shrunk.
"""

from typing import NamedTuple, Self

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.neighbours.distances import norms


class ClusterMetrics(NamedTuple):
    """A metric A = FFᵀ for each of k clusters."""

    factors: Matrix
    """(k, d, d) F; (k, d, 1), its diagonal, of metrics that only weigh the columns."""
    shrinkage: float

    @classmethod
    def plain(cls, k: int, d: int, shrinkage: float, *, diagonal: bool) -> Self:
        """Squared differences of the columns, added up."""
        identity = np.ones((d, 1)) if diagonal else np.eye(d)
        return cls(np.repeat(identity[None], k, axis=0), shrinkage)

    @property
    def distance_factor(self) -> float:
        """Factor of squared distances in costs."""
        return distance_factor(self.shrinkage)

    @property
    def offsets(self) -> Vector:
        """(k,) cost of a row beside its distance."""
        traces = np.square(self.factors).sum(axis=(1, 2))
        return np.asarray(self.shrinkage * traces - [log_determinant(factor) for factor in self.factors])

    def squares(self, differences: Matrix, cluster: int) -> Vector:
        """(m,) squared lengths of differences (m, d) in the metric of the cluster."""
        return squared_lengths(differences, self.factors[cluster])

    def costs(self, x: Matrix, centres: Matrix) -> Matrix:
        """(n, k) of the rows x (n, d) in each cluster, pairs left aside."""
        distances = [self.squares(x - centre, h) for h, centre in enumerate(centres)]
        return np.ascontiguousarray((self.distance_factor * np.array(distances) + self.offsets[:, None]).T)


def distance_factor(shrinkage: float) -> float:
    """1 − s; 1 at s = 1, where every metric is the plain one and distances alone decide, as for any s near 1."""
    return 1 - shrinkage or 1.0


def squared_lengths(differences: Matrix, factor: Matrix) -> Vector:
    """(m,) of differences (m, d); factor: (d, d), or (d, 1) of the weights of columns."""
    return norms(differences * factor[:, 0] if factor.shape[1] < len(factor) else differences @ factor)


def log_determinant(factor: Matrix) -> float:
    """Logarithm of the determinant of FFᵀ, F triangular or (d, 1)."""
    diagonal = factor[:, 0] if factor.shape[1] < len(factor) else factor.diagonal()
    return 2 * float(np.log(np.abs(diagonal)).sum())


def inverse_factor(spread: Matrix, least: float, *, definite: bool = False) -> Matrix:
    """F of the inverse of a symmetric matrix (d, d), whose eigenvalues are raised to `least`: triangular, (d, d).

    spread: (d, 1) for the diagonal alone; the factor then has this shape too. definite: no eigenvalue is below `least`
    but for rounding.
    """
    if spread.shape[1] < len(spread):
        return np.asarray(1 / np.sqrt(np.maximum(spread, least)))
    factor, failed = scipy.linalg.lapack.dpotrf(spread, lower=True) if definite else (spread, 1)
    if not failed:
        return np.ascontiguousarray(scipy.linalg.solve_triangular(factor, np.eye(len(factor)), lower=True).T)
    values, vectors = scipy.linalg.eigh(spread)
    return _triangular(vectors / np.sqrt(np.maximum(values, least)))


def blend(first: Matrix, other: Matrix, share: float) -> Matrix:
    """F of (1 − share)·A + share·B, of the factors of A and B."""
    parts = np.sqrt(1 - share) * first, np.sqrt(share) * other
    if first.shape[1] < len(first):
        return np.asarray(np.hypot(*parts))
    return _triangular(np.hstack(parts))


def _triangular(root: Matrix) -> Matrix:
    """(d, d) lower triangular F with FFᵀ = RRᵀ, for R (d, m)."""
    (upper,) = scipy.linalg.qr(root.T, mode="r", check_finite=False)
    return np.ascontiguousarray(upper[: len(root)].T)
