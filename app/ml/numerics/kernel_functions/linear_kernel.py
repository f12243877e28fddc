"""The linear kernel: k(x, y) = x·y."""

from typing import NamedTuple

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.neighbours.distances import norms


class Linear(NamedTuple):
    """x·y."""

    def matrix(self, left: Matrix, right: Matrix) -> Matrix:
        """(n, m) inner products."""
        products: Matrix = left @ right.T
        return products

    def diagonal(self, rows: Matrix) -> Vector:
        """(n,) squared lengths."""
        return norms(rows)
