"""The Matérn kernels of half-integer order: functions that are rougher than those of the radial basis function kernel.

With the scaled distance r = √Σⱼ (xⱼ − yⱼ)²/lⱼ² the kernel is exp(−r) for order 1/2 (continuous functions),
(1 + s) exp(−s) with s = √3 r for 3/2 (one derivative) and (1 + s + s²/3) exp(−s) with s = √5 r for 5/2 (two).

Source: Rasmussen & Williams, Gaussian Processes for Machine Learning, equations 4.14 and 4.17.
"""

from typing import Literal, NamedTuple, Self

import numpy as np

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.kernel_functions.column_differences import squares_by_column
from app.ml.numerics.kernel_functions.compiled.radial import radial_slopes, radial_values
from app.ml.numerics.kernel_functions.kernel_function import WeightedSum
from app.ml.numerics.kernel_functions.pair_squares import pair_squares

Order = Literal[1, 3, 5]


class Matern(NamedTuple):
    """A polynomial of the scaled distance times its exponential."""

    order: Order
    """Twice the order ν."""
    length_scale: Vector
    """(1,) of all columns, or (d,) of each."""

    def matrix(self, left: Matrix, right: Matrix) -> Matrix:
        """(n, m) values in (0, 1]; those of equal rows are exactly 1."""
        values = pair_squares(left / self.length_scale, right / self.length_scale)
        radial_values(values, self.order)
        return values

    def diagonal(self, rows: Matrix) -> Vector:
        """(n,) ones."""
        return np.ones(len(rows))

    def logarithms(self) -> Vector:
        """(1,) or (d,) logarithms of the length scales."""
        return np.log(self.length_scale)

    def with_logarithms(self, values: Vector) -> Self:
        """A kernel with length scales of these logarithms."""
        return self._replace(length_scale=np.exp(values))

    def weighted_sum(self, rows: Matrix, weights: Matrix) -> WeightedSum:
        """Derivatives by log l: lⱼ⁻² Σ w (−k′(r)/r) (xⱼ − yⱼ)²."""
        scaled = rows / self.length_scale
        slopes = pair_squares(scaled, scaled)
        total = radial_slopes(slopes, weights, self.order)
        by_column = squares_by_column(scaled, slopes)
        return WeightedSum(total, by_column if len(self.length_scale) > 1 else by_column.sum(keepdims=True))
