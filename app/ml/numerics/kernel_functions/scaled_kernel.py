"""A kernel times a variance: c k(x, y), of functions with the amplitude √c."""

from typing import NamedTuple, Self

import numpy as np

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.kernel_functions.kernel_function import CovarianceFunction, WeightedSum


class Scaled(NamedTuple):
    """c k(x, y)."""

    variance: float
    kernel: CovarianceFunction

    def matrix(self, left: Matrix, right: Matrix) -> Matrix:
        """(n, m) values of c k."""
        values = self.kernel.matrix(left, right)
        values *= self.variance
        return values

    def diagonal(self, rows: Matrix) -> Vector:
        """(n,) values of c k(x, x)."""
        return self.variance * self.kernel.diagonal(rows)

    def logarithms(self) -> Vector:
        """Logarithm of c, then those of the kernel."""
        return np.append(np.log(self.variance), self.kernel.logarithms())

    def with_logarithms(self, values: Vector) -> Self:
        """A kernel with parameters of these logarithms."""
        kernel = self.kernel.with_logarithms(values[1:])
        return self._replace(variance=float(np.exp(values[0])), kernel=kernel)

    def weighted_sum(self, rows: Matrix, weights: Matrix) -> WeightedSum:
        """The derivative by log c is the sum itself; those by the logarithms of the kernel follow."""
        total, gradient = self.kernel.weighted_sum(rows, weights)
        return WeightedSum(self.variance * total, self.variance * np.append(total, gradient))
