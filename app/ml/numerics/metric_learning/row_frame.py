"""Coordinates in which a metric is learned: rows about their mean, along the directions in which they vary."""

from typing import NamedTuple, Self

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.linear_algebra.principal_directions import principal, signed
from app.ml.numerics.linear_algebra.solve import ILL_CONDITIONED, centred, near_one

MIN_VARIANCE_SHARE = ILL_CONDITIONED**-2
"""Variance of a direction, relative to the largest, below which it is rounding."""


class RowFrame(NamedTuple):
    """Rows in units in which the columns that vary have a mean variance of 1."""

    mean: Vector
    """(d,) of the rows."""
    axes: Matrix
    """(d, r) from the columns to the coordinates: the main directions, or the columns themselves."""
    rows: Matrix
    """(n, r) coordinates of the rows."""

    @classmethod
    def of(cls, x: Matrix, weights: Vector, *, diagonal: bool) -> Self:
        """diagonal: keep the columns."""
        centred_rows, mean = centred(x, weights)
        unit = near_one(float(np.abs(centred_rows).max(initial=0.0)))
        centred_rows *= unit
        varies = np.abs(centred_rows).max(axis=0, initial=0.0) > 0
        share = weights / weights.sum()
        variance = float((share @ np.square(centred_rows)).sum()) / max(1, int(varies.sum()))
        scale = unit / (np.sqrt(variance) or 1.0)
        axes = np.eye(x.shape[1]) if diagonal else _directions(centred_rows, share)
        return cls(mean, axes * scale, centred_rows @ axes * (scale / unit))

    def loadings(self, factor: Matrix, weights: Vector, *, turned: bool) -> Matrix:
        """(p, d) of a factor (p, r). turned: to the directions in which its coordinates vary most, in this order."""
        if not factor.size:
            return np.zeros((1, len(self.axes)))
        if turned:
            z = self.rows @ factor.T
            _, vectors = scipy.linalg.eigh((z * (weights / weights.sum())[:, None]).T @ z)
            factor = vectors.T[::-1] @ factor
        loadings = factor @ self.axes.T
        return signed(loadings) if turned else loadings


def _directions(centred_rows: Matrix, share: Vector) -> Matrix:
    """(d, r) main directions of centred rows, without those in which they differ by rounding."""
    spectrum = principal(centred_rows, share)
    significant = spectrum.values > MIN_VARIANCE_SHARE * spectrum.values.max(initial=0.0)
    return np.ascontiguousarray(spectrum.directions[significant].T)
