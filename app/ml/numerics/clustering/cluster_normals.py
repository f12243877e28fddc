"""Normal densities of clusters: mean and covariance of the rows of each, for memberships and anomalies (LION 13.2).

The covariance of a cluster is that of its rows, weighted, with the sum of the weights in the denominator. Where it is
singular, as with fewer rows than columns, it is shrunk: (n S + (d + 1) s² I) / (n + d + 1), with n rows, d columns and
the mean variance s² within the cluster or within all clusters, the larger of the two. The mean of the squared
Mahalanobis distance over the rows of a cluster is therefore d exactly, unless the covariance was shrunk. With many
columns and clusters the covariance is one variance for all columns.
"""

from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.density import gaussian_mixture as mixture
from app.ml.numerics.density.gaussian_mixture import Components
from app.ml.numerics.density.normal_ellipsoids import Normals
from app.ml.numerics.linear_algebra.solve import near_one

MOST_NUMBERS = 1_000_000
"""Numbers of all full covariances together; beyond that they are spherical."""
SINGULAR = 1e-10
"""Smallest eigenvalue, as a share of the mean variance within clusters, of a covariance that is not shrunk."""
MAX_SQUARABLE = 1e150
"""Largest number whose square is one."""
MARGIN = 1 + 1e-9
"""Factor of the largest distance within which a row lies: no rounding makes an anomaly."""


class ClusterNormals(NamedTuple):
    shares: Vector
    """(k,) weight of the rows of each cluster, with sum 1."""
    means: Matrix
    """(k, d); a cluster without rows is at its prototype."""
    whitening: NDArray[np.float64]
    """(k, d, d) or (k, 1, d), as of `Components`."""
    shrunk: NDArray[np.bool_]
    """(k,) true where the covariance was singular."""
    furthest: float
    """Largest squared Mahalanobis distance of a training row to the mean of its cluster."""

    @property
    def components(self) -> Components:
        return Components(self.shares, self.means, self.whitening)

    @property
    def covariance(self) -> str:
        """Form of the covariances."""
        return "full" if self.components.full else "spherical"

    @property
    def normals(self) -> Normals:
        """The densities, as the query of ellipsoids reads them."""
        whole = self.components
        return Normals(self.shares, self.means, whole.factors if whole.full else 1 / self.whitening)

    def squares(self, x: Matrix, labels: Labels) -> Vector:
        """(n,) squared Mahalanobis distance of each row to the mean of its cluster."""
        return mixture.squares(self.components, x, labels)

    def tails(self, x: Matrix, labels: Labels) -> Vector:
        """(n,) probability that a row of the cluster lies farther from its mean: chi-square with d degrees."""
        return np.asarray(scipy.special.chdtrc(self.means.shape[1], self.squares(x, labels)))

    def memberships(self, x: Matrix) -> Matrix:
        """(n, k) probabilities of the clusters, with sum 1."""
        return mixture.memberships(mixture.log_joint(self.components, x))

    def beyond(self, x: Matrix, labels: Labels) -> NDArray[np.bool_]:
        """(n,) true where a row is farther from its cluster than every training row from its own."""
        return np.asarray(self.squares(x, labels) > self.furthest * MARGIN)


def cluster_normals(x: Matrix, weights: Vector, labels: Labels, prototypes: Matrix) -> ClusterNormals | None:
    """Densities of rows (n, d) with labels (n,) into prototypes (k, d); None beyond the range of numbers."""
    k, d = prototypes.shape
    full = k * d * d <= MOST_NUMBERS
    origin, largest = x.mean(axis=0), float(np.abs(x).max(initial=0.0))
    if largest > MAX_SQUARABLE:
        return None
    unit = near_one(float(np.abs(x - origin).max(initial=0.0)))
    rows = (x - origin) * unit
    means, scatters, masses = _moments(rows, weights, labels, (prototypes - origin) * unit, full=full)
    pooled = _mean_variance(scatters, masses)
    counts = np.bincount(labels, minlength=k)
    covariances, shrunk = _shrunk(scatters, masses, counts, pooled)
    whitening = _whitening(covariances, d) * unit
    if not np.isfinite(whitening).all():
        return None
    normals = ClusterNormals(masses / masses.sum(), means / unit + origin, whitening, shrunk, 0.0)
    return normals._replace(furthest=float(normals.squares(x, labels).max(initial=0.0)))


def _moments(
    rows: Matrix, weights: Vector, labels: Labels, prototypes: Matrix, *, full: bool
) -> tuple[Matrix, NDArray[np.float64], Vector]:
    """Means (k, d), weighted scatters (k, d, d), or (k,) mean ones of a column, and weights (k,) of the clusters."""
    k, d = prototypes.shape
    means, masses = prototypes.copy(), np.bincount(labels, weights, k).astype(np.float64)
    scatters = np.zeros((k, d, d) if full else k)
    order = np.argsort(labels, kind="stable")
    ends = np.cumsum(np.bincount(labels, minlength=k))
    for j in np.flatnonzero(masses > 0):
        rows_of_cluster = order[(ends[j - 1] if j else 0) : ends[j]]
        share = weights[rows_of_cluster] / masses[j]
        means[j] = share @ rows[rows_of_cluster]
        centred = rows[rows_of_cluster] - means[j]
        weighed = centred * weights[rows_of_cluster, None]
        scatters[j] = weighed.T @ centred if full else (weighed * centred).sum() / d
    return means, scatters, masses


def _mean_variance(scatters: NDArray[np.float64], masses: Vector) -> float:
    """Mean variance of a column within clusters; 1 where nothing varies."""
    return float(_per_column(scatters).sum() / masses.sum()) or 1.0


def _per_column(scatters: NDArray[np.float64]) -> Vector:
    """(k,) means over the columns."""
    return scatters if scatters.ndim == 1 else np.trace(scatters, axis1=1, axis2=2) / scatters.shape[1]


def _shrunk(
    scatters: NDArray[np.float64], masses: Vector, counts: Labels, pooled: float
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Covariances (k, d, d), or variances (k,), and which of them were shrunk."""
    full, k = scatters.ndim > 1, len(scatters)
    d = scatters.shape[1] if full else 1
    shape = (k, 1, 1) if full else (k,)
    covariances = scatters / np.where(masses > 0, masses, 1.0).reshape(shape)
    variance = np.maximum(_per_column(covariances), pooled)
    least = np.linalg.eigvalsh(covariances)[:, 0] if full else covariances
    shrunk = least <= SINGULAR * variance
    target = variance.reshape(shape) * (np.eye(d) if full else 1.0)
    rows = counts.reshape(shape)
    mixed = (rows * covariances + (d + 1) * target) / (rows + d + 1)
    return np.where(shrunk.reshape(shape), mixed, covariances), shrunk


def _whitening(covariances: NDArray[np.float64], d: int) -> NDArray[np.float64]:
    """Inverses of Cholesky factors (k, d, d), or reciprocal deviations (k, 1, d)."""
    if covariances.ndim == 1:
        return np.repeat(1 / np.sqrt(covariances), d).reshape(-1, 1, d)
    lower, unit = np.linalg.cholesky(covariances), np.eye(d)
    solved = [scipy.linalg.solve_triangular(triangle, unit, lower=True, check_finite=False) for triangle in lower]
    return np.array(solved)
