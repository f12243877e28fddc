"""The constant kernel: k(x, y) = c, the variance of an unknown constant."""

from typing import NamedTuple, Self

import numpy as np

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.kernel_functions.kernel_function import WeightedSum


class Constant(NamedTuple):
    """The same value for all pairs."""

    variance: float

    def matrix(self, left: Matrix, right: Matrix) -> Matrix:
        """(n, m) equal values."""
        return np.full((len(left), len(right)), self.variance)

    def diagonal(self, rows: Matrix) -> Vector:
        """(n,) equal values."""
        return np.full(len(rows), self.variance)

    def logarithms(self) -> Vector:
        """(1,) logarithm of the variance."""
        return np.log([self.variance])

    def with_logarithms(self, values: Vector) -> Self:
        """A kernel with a variance of this logarithm."""
        return self._replace(variance=float(np.exp(values[0])))

    def weighted_sum(self, rows: Matrix, weights: Matrix) -> WeightedSum:  # noqa: ARG002 - the same in all rows
        """The sum c Σ w is its own derivative by log c."""
        total = self.variance * float(weights.sum())
        return WeightedSum(total, np.array([total]))
