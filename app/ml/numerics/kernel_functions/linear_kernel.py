"""The linear kernel: k(x, y) = x·y."""

from typing import NamedTuple, Self

import numpy as np

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.kernel_functions.kernel_function import WeightedSum
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

    def logarithms(self) -> Vector:
        """No parameters."""
        return np.empty(0)

    def with_logarithms(self, values: Vector) -> Self:  # noqa: ARG002 - there are none
        """The same kernel."""
        return self

    def weighted_sum(self, rows: Matrix, weights: Matrix) -> WeightedSum:
        """Σ x·(W x), without derivatives."""
        return WeightedSum(float(np.vdot(rows, weights @ rows)), np.empty(0))
