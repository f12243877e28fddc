"""The catalogue of dissimilarities between rows: distances by name, a quadratic form, and the inverse of a cosine.

Ranges, variances and covariances are those of reference rows. The covariance S has the divisor n - ddof; with ddof = 0
the squared Mahalanobis distances of the reference rows from their mean, (x − μ)ᵀS⁻¹(x − μ), have the rank of S as their
mean. A singular S has its pseudo-inverse in place of S⁻¹.

References: Mahalanobis (1936), Proc. Natl. Inst. Sci. India 2:49; Battiti & Brunato, The LION Way, sections 12.2 and
13.2.
"""

import math
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix
from app.ml.numerics.clustering.linkage import unit
from app.ml.numerics.linear_algebra.solve import EPS
from app.ml.numerics.neighbours.metric_space import unit_rows
from app.ml.numerics.neighbours.named_metrics import Metric, NamedMetric

Dissimilarity: TypeAlias = Literal[Metric, "quadratic", "inverse_cosine"]


class Measured(NamedTuple):
    distances: Matrix
    """(n, m); NaN where there is none."""
    rank: int | None = None
    """Rank of the covariance; None: the metric has none."""
    constant: tuple[int, ...] = ()
    """Columns that play no part, as the reference rows do not vary in them."""


def by_metric(metric: NamedMetric, rows: Matrix, others: Matrix, divisor: float = 1.0) -> Measured:
    """Distances of rows (n, d) to others (m, d). divisor: of the covariance, relative to that of the metric."""
    distances = metric.distances(minkowski(metric.points(rows), metric.points(others), metric.p)) * math.sqrt(divisor)
    space = metric.space
    constant = () if space is None else tuple(np.flatnonzero(np.isinf(space.scale)).tolist())
    rank = None if space is None or space.turn is None else int(space.turn.any(axis=0).sum())
    return Measured(distances, rank, constant)


def minkowski(points: Matrix, others: Matrix, p: float) -> Matrix:
    """(n, m), in units in which powers neither overflow nor vanish; cut off at the largest number."""
    scale = max(unit(points), unit(others))
    kinds = {1.0: {"metric": "cityblock"}, 2.0: {"metric": "euclidean"}, math.inf: {"metric": "chebyshev"}}
    how = kinds.get(p, {"metric": "minkowski", "p": p})
    with np.errstate(over="ignore"):
        distances = scipy.spatial.distance.cdist(points / scale, others / scale, **how) * scale
    return np.asarray(np.minimum(distances, np.finfo(float).max))


def learned_metric(name: Metric, p: float, reference: Matrix, ddof: int) -> tuple[NamedMetric, float]:
    """The metric by the reference rows, and n - ddof relative to its own divisor. p: power for minkowski."""
    n = len(reference)
    relative = (n - ddof) / (n - 1) if name in {"mahalanobis", "seuclidean"} and n > 1 else 1.0
    return NamedMetric.learned(name, p, reference, np.ones(n)), relative


def by_quadratic_form(factor: Matrix, rows: Matrix, others: Matrix) -> Matrix:
    """(n, m) √((x − y)ᵀM(x − y)) for M = LLᵀ. factor: L (d, d), as `definite_factor` finds it."""
    return minkowski(rows @ factor, others @ factor, 2.0)


def definite_factor(matrix: Matrix) -> Matrix | None:
    """L (d, d) with LLᵀ = M of a symmetric matrix; None: it is not positive definite."""
    scale = unit(matrix)
    factor, failed = scipy.linalg.lapack.dpotrf(matrix / scale, lower=True, clean=True)
    least = np.square(factor.diagonal()).min(initial=1.0)
    return None if failed or not least > len(matrix) * EPS * np.abs(matrix).max() / scale else factor * math.sqrt(scale)


def inverse_cosine(rows: Matrix, others: Matrix, eps: float) -> Matrix:
    """(n, m) ‖x‖‖y‖ / (eps + x·y); NaN where x·y is 0 or less, as of rows of zeros."""
    lengths = [np.sqrt(np.vecdot(x / unit(x), x / unit(x))) * unit(x) for x in (rows, others)]
    cosines = np.where(lengths[0][:, None] * lengths[1] > 0, unit_rows(rows) @ unit_rows(others).T, 0.0)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        inverse = 1 / (cosines + eps / (lengths[0][:, None] * lengths[1]))
    return np.where(cosines > 4 * EPS, inverse, np.nan)
