"""The sigmoid kernel: k(x, y) = tanh(γ x·y + c).

It is not positive semidefinite in general: rows may have no features whose inner products it would be.

Source: Battiti & Brunato, The LION Way, section 10.1.3.
"""

from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.neighbours.distances import norms


class Sigmoid(NamedTuple):
    """tanh(γ x·y + c)."""

    gamma: float
    coef0: float

    def matrix(self, left: Matrix, right: Matrix) -> Matrix:
        """(n, m) values in (-1, 1)."""
        return np.tanh(self.gamma * (left @ right.T) + self.coef0)

    def diagonal(self, rows: Matrix) -> Vector:
        """(n,) values of the rows with themselves."""
        return np.tanh(self.gamma * norms(rows) + self.coef0)
