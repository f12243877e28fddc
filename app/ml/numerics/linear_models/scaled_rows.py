"""Sparse rows in coordinates of their own: each column less its mean, over its unit, and a last column of a constant.

They stay as they are; what centring and scaling do to products is done to the products.
"""

from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.contract.sparse_rows import SparseRows


class ScaledRows(NamedTuple):
    """(n, d + 1)"""

    rows: SparseRows
    mean: Vector
    """(d,)"""
    unit: Vector
    """(d,)"""
    constant: float

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.rows), self.unit.size + 1

    @property
    def T(self) -> "ScaledColumns":  # noqa: N802  as of an array
        return ScaledColumns(self)

    def __matmul__(self, points: Matrix) -> Matrix:
        """points: (d + 1, s)."""
        coef = points[:-1] / self.unit[:, None]
        return np.asarray(self.rows @ coef + (self.constant * points[-1] - self.mean @ coef))


class ScaledColumns(NamedTuple):
    """The transpose, for products with dense arrays on the right."""

    of: ScaledRows

    def __matmul__(self, pull: Matrix) -> Matrix:
        """pull: (n, s)."""
        scaled, sums = self.of, pull.sum(axis=0)
        inner = (scaled.rows.T @ pull - np.outer(scaled.mean, sums)) / scaled.unit[:, None]
        return np.vstack([inner, scaled.constant * sums])
