"""The sum of two kernels: the covariance of a sum of independent functions."""

from typing import NamedTuple, Self

import numpy as np

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.kernel_functions.kernel_function import CovarianceFunction, WeightedSum
from app.ml.numerics.kernel_functions.kernel_pair import joint_logarithms, with_joint_logarithms


class Sum(NamedTuple):
    """k₁(x, y) + k₂(x, y)."""

    first: CovarianceFunction
    second: CovarianceFunction

    def matrix(self, left: Matrix, right: Matrix) -> Matrix:
        """(n, m) sums."""
        values = self.first.matrix(left, right)
        values += self.second.matrix(left, right)
        return values

    def diagonal(self, rows: Matrix) -> Vector:
        """(n,) sums."""
        return self.first.diagonal(rows) + self.second.diagonal(rows)

    def logarithms(self) -> Vector:
        """Those of the first kernel, then of the second."""
        return joint_logarithms(self)

    def with_logarithms(self, values: Vector) -> Self:
        """A sum of kernels with parameters of these logarithms."""
        return type(self)(*with_joint_logarithms(self, values))

    def weighted_sum(self, rows: Matrix, weights: Matrix) -> WeightedSum:
        """Derivatives of the first kernel, then of the second."""
        first, second = self.first.weighted_sum(rows, weights), self.second.weighted_sum(rows, weights)
        return WeightedSum(first.value + second.value, np.concatenate([first.gradient, second.gradient]))
