"""The ANOVA kernel: k(x, y) = (Σⱼ exp(−γ (xⱼ − yⱼ)²))^p.

A sum of a kernel for each column: an additive model of columns for p = 1, of their pairs for p = 2. A power of the
difference in place of the power of the sum would not be symmetric for odd p. Positive semidefinite.

Source: Battiti & Brunato, The LION Way, section 10.1.3, with the power outside of the sum.
"""

from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import Matrix, Vector


class Anova(NamedTuple):
    """(Σⱼ exp(−γ (xⱼ − yⱼ)²))^p."""

    gamma: float
    degree: int

    def matrix(self, left: Matrix, right: Matrix) -> Matrix:
        """(n, m) values up to d^p."""
        total = np.zeros((len(left), len(right)))
        for j in range(left.shape[1]):
            total += np.exp(-self.gamma * np.square(left[:, j, None] - right[:, j]))
        powers: Matrix = total**self.degree
        return powers

    def diagonal(self, rows: Matrix) -> Vector:
        """(n,) all d^p."""
        return np.full(len(rows), float(rows.shape[1]) ** self.degree)
