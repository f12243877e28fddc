"""The periodic kernel: k(x, y) = exp(−2 Σⱼ sin²(π (xⱼ − yⱼ)/pⱼ)/lⱼ²), of functions that repeat themselves.

It is the radial basis function kernel of points on circles, since 2 sin²(a/2) = 1 − cos a is half the squared distance
of two points of the unit circle with the angle a between them. A sum over columns keeps it positive semidefinite, which
the sine of a distance in several columns does not.

Source: MacKay (1998), Introduction to Gaussian processes; Rasmussen & Williams, Gaussian Processes for Machine
Learning, equation 4.31.
"""

from typing import NamedTuple, Self

import numpy as np

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.kernel_functions.kernel_function import WeightedSum
from app.ml.numerics.kernel_functions.rbf_kernel import Rbf


class Periodic(NamedTuple):
    """exp(−2 Σⱼ sin²(π (xⱼ − yⱼ)/pⱼ)/lⱼ²)."""

    length_scale: Vector
    """(1,) of all columns, or (d,) of each."""
    period: Vector
    """(1,) of all columns, or (d,) of each."""

    def matrix(self, left: Matrix, right: Matrix) -> Matrix:
        """(n, m) values in (0, 1]; those of equal rows are exactly 1."""
        return self._circular.matrix(self._points(left), self._points(right))

    def diagonal(self, rows: Matrix) -> Vector:
        """(n,) ones."""
        return np.ones(len(rows))

    def logarithms(self) -> Vector:
        """Logarithms of the length scales, then of the periods."""
        logarithms: Vector = np.log(np.concatenate([self.length_scale, self.period]))
        return logarithms

    def with_logarithms(self, values: Vector) -> Self:
        """A kernel with length scales and periods of these logarithms."""
        length_scale, period = np.split(np.exp(values), [len(self.length_scale)])
        return type(self)(length_scale, period)

    def weighted_sum(self, rows: Matrix, weights: Matrix) -> WeightedSum:
        """Derivatives by log l, then by log p: with angles a, Σ w k a sin(a)/l² for the latter."""
        d = rows.shape[1]
        points = self._points(rows)
        total, by_point = self._circular.weighted_sum(points, weights)  # by log γ with γ = 1/(2 l²)
        by_scale: Vector = -2 * (by_point[:d] + by_point[d:]) if len(self.length_scale) > 1 else -2 * by_point
        products = weights * self._circular.matrix(points, points)
        sine, cosine = points[:, :d], points[:, d:]
        angles = 2 * np.pi * (rows / self.period)
        # Σᵢₖ (aᵢ − aₖ) sin(aᵢ − aₖ) by the addition theorem
        sums = np.einsum("ij,ij->j", angles * sine, products @ cosine) - np.einsum(
            "ij,ij->j", angles * cosine, products @ sine
        )
        by_period = 2 * sums / self.length_scale**2
        if len(self.period) == 1:
            by_period = by_period.sum(keepdims=True)
        return WeightedSum(total, np.concatenate([by_scale, by_period]))

    @property
    def _circular(self) -> Rbf:
        gamma = 0.5 / self.length_scale**2
        return Rbf(np.tile(gamma, 2) if len(gamma) > 1 else gamma)

    def _points(self, rows: Matrix) -> Matrix:
        """(n, 2d) sines, then cosines."""
        angles = 2 * np.pi * (rows / self.period)
        return np.hstack([np.sin(angles), np.cos(angles)])
