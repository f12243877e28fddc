"""Covariance of rows, shrunk to the mean variance.

References: Ledoit & Wolf (2004), J. Multivar. Anal. 88:365.
"""

from typing import Literal, NamedTuple

import numpy as np

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.neighbours.distances import norms

Form = Literal["full", "diagonal", "spherical"]


MIN_SHRINKAGE = 1e-6
"""Smallest share that is estimated: rows that do not span all columns have a density too."""


class Covariance(NamedTuple):
    variances: Vector
    """(d,) of the columns."""
    matrix: Matrix
    """(d, d) if it is full, else (0, 0)."""
    shrinkage: float
    """Share of the mean variance in it."""

    @property
    def full(self) -> bool:
        return self.matrix.size > 0


def covariance_of(centred: Matrix, share: Vector, form: Form, shrinkage: float | None) -> Covariance:
    """Covariance of rows (n, d) less their mean, whose weights (n,) add up to 1. shrinkage: None to estimate it."""
    d = centred.shape[1]
    variances = share @ np.square(centred)
    mean = float(variances.mean())
    if form == "spherical":
        return Covariance(np.full(d, mean), np.zeros((0, 0)), 1.0)
    matrix = (centred * share[:, None]).T @ centred if form == "full" else np.zeros((0, 0))
    if shrinkage is None:
        shrinkage = _estimated(centred, share, variances, matrix, mean)
    shrunk = (1 - shrinkage) * variances + shrinkage * mean
    if form == "full":
        matrix *= 1 - shrinkage
        np.fill_diagonal(matrix, shrunk)
    return Covariance(shrunk, matrix, shrinkage)


def _estimated(centred: Matrix, share: Vector, variances: Vector, matrix: Matrix, mean: float) -> float:
    """The share with the least expected squared error: that of the covariance of the rows over its squared distance to
    the mean variance. Errors are of each row's own products of columns (n, d, d), never held.
    """
    if mean == 0:
        return 0.0
    if matrix.size:
        spread = float(np.square(matrix).sum())
        across = np.einsum("ij,ij->i", centred @ matrix, centred)
        errors = np.square(norms(centred)) - 2 * across + spread
        distance = spread - len(variances) * mean**2
    else:
        errors = np.square(np.square(centred) - variances).sum(axis=1)
        distance = float(np.square(variances - mean).sum())
    error = float(np.square(share) @ errors)
    return min(1.0, max(MIN_SHRINKAGE, error / distance)) if distance > 0 else 1.0
