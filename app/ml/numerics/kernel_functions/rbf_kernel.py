"""The radial basis function kernel: k(x, y) = exp(−Σⱼ γⱼ (xⱼ − yⱼ)²).

One γ for all columns, as a support vector machine has it, or one each: a Gaussian process learns which columns matter
("automatic relevance determination"). With length scales l it is exp(−Σⱼ (xⱼ − yⱼ)²/(2 lⱼ²)), γ = 1/(2 l²).

Source: Battiti & Brunato, The LION Way, section 10.1.3; Rasmussen & Williams, Gaussian Processes for Machine Learning,
equations 4.9 and 5.9 (derivatives).
"""

from typing import NamedTuple, Self

import numpy as np

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.kernel_functions.column_differences import squares_by_column
from app.ml.numerics.kernel_functions.compiled.radial import RBF, radial_slopes, radial_values
from app.ml.numerics.kernel_functions.kernel_function import WeightedSum
from app.ml.numerics.kernel_functions.pair_squares import pair_squares


class Rbf(NamedTuple):
    """exp(−Σⱼ γⱼ (xⱼ − yⱼ)²)."""

    gamma: Vector
    """(1,) of all columns, or (d,) of each."""

    def matrix(self, left: Matrix, right: Matrix) -> Matrix:
        """(n, m) values in (0, 1]; those of equal rows are exactly 1."""
        root = np.sqrt(self.gamma)
        values = pair_squares(left * root, right * root)
        radial_values(values, RBF)
        return values

    def diagonal(self, rows: Matrix) -> Vector:
        """(n,) ones."""
        return np.ones(len(rows))

    def logarithms(self) -> Vector:
        """(1,) or (d,) logarithms of γ."""
        return np.log(self.gamma)

    def with_logarithms(self, values: Vector) -> Self:
        """A kernel with γ of these logarithms."""
        return type(self)(np.exp(values))

    def weighted_sum(self, rows: Matrix, weights: Matrix) -> WeightedSum:
        """Derivatives by log γ: −γⱼ Σ w k (xⱼ − yⱼ)²."""
        scaled = rows * np.sqrt(self.gamma)
        slopes = pair_squares(scaled, scaled)
        total = radial_slopes(slopes, weights, RBF)
        by_column = squares_by_column(scaled, slopes)
        return WeightedSum(total, -by_column if len(self.gamma) > 1 else -by_column.sum(keepdims=True))
