"""Units of the columns of a matrix: from numbers as a fit has them to those of the table."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from app.ml.contract.data import Matrix, Vector

if TYPE_CHECKING:
    import scipy


class Affine(NamedTuple):
    """Rows x (d,) of a matrix from rows z (d,) in the table's own units:  xⱼ = shiftⱼ + Σ matrixⱼₖ zₖ."""

    matrix: "scipy.sparse.csr_array"
    """(d, d)."""
    shift: Vector
    """(d,)."""

    def coef(self, coef: Matrix) -> Matrix:
        """Coefficients of z from those of x: (d,) or (d, k). The same linear map takes factors of their covariance."""
        return np.asarray(self.matrix.T @ coef)

    def constant(self, coef: Matrix) -> Matrix:
        """Change of the intercept: () or (k,)."""
        return np.asarray(self.shift @ coef)


class ColumnUnits(NamedTuple):
    """Units of the columns of a matrix, each by itself: x of column j is offsetⱼ + scaleⱼ·x in the table."""

    offset: Vector
    """(d,)"""
    scale: Vector
    """(d,)"""

    def values(self, x: Matrix) -> Matrix:
        """Rows, means or points of curves: (…, d)."""
        return np.asarray(self.offset + self.scale * x)

    def widths(self, x: Matrix) -> Matrix:
        """Differences, such as standard deviations: (…, d)."""
        return np.asarray(self.scale * x)

    def coef(self, coef: Matrix) -> Matrix:
        """Coefficients of the table's numbers, from those of the matrix: (d, k)."""
        return np.asarray(coef / self.scale[:, None])

    def constant(self, coef: Matrix) -> Matrix:
        """Change of the intercept: (k,)."""
        return np.asarray(-(self.offset / self.scale) @ coef)
