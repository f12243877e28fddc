"""The product of two kernels: both make rows alike, as in a season that changes."""

from typing import NamedTuple, Self

import numpy as np

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.kernel_functions.kernel_function import CovarianceFunction, WeightedSum
from app.ml.numerics.kernel_functions.kernel_pair import joint_logarithms, with_joint_logarithms


class Product(NamedTuple):
    """k₁(x, y) k₂(x, y), positive semidefinite as both are (Schur)."""

    first: CovarianceFunction
    second: CovarianceFunction

    def matrix(self, left: Matrix, right: Matrix) -> Matrix:
        """(n, m) products."""
        values = self.first.matrix(left, right)
        values *= self.second.matrix(left, right)
        return values

    def diagonal(self, rows: Matrix) -> Vector:
        """(n,) products."""
        return self.first.diagonal(rows) * self.second.diagonal(rows)

    def logarithms(self) -> Vector:
        """Those of the first kernel, then of the second."""
        return joint_logarithms(self)

    def with_logarithms(self, values: Vector) -> Self:
        """A product of kernels with parameters of these logarithms."""
        return type(self)(*with_joint_logarithms(self, values))

    def weighted_sum(self, rows: Matrix, weights: Matrix) -> WeightedSum:
        """Derivatives of the first kernel with weights times the second, then the other way round."""
        total, first = self.first.weighted_sum(rows, weights * self.second.matrix(rows, rows))
        _, second = self.second.weighted_sum(rows, weights * self.first.matrix(rows, rows))
        return WeightedSum(total, np.concatenate([first, second]))
