"""The polynomial kernel: k(x, y) = (γ x·y + c)^p.

Its features are all products of up to p columns; with c = 0, of exactly p. It is positive semidefinite for γ, c ≥ 0.

Source: Battiti & Brunato, The LION Way, section 10.1.3.
"""

from typing import NamedTuple

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.neighbours.distances import norms


class Polynomial(NamedTuple):
    """(γ x·y + c)^p."""

    gamma: float
    degree: int
    coef0: float

    def matrix(self, left: Matrix, right: Matrix) -> Matrix:
        """(n, m) powers."""
        powers: Matrix = (self.gamma * (left @ right.T) + self.coef0) ** self.degree
        return powers

    def diagonal(self, rows: Matrix) -> Vector:
        """(n,) powers of the rows with themselves."""
        powers: Vector = (self.gamma * norms(rows) + self.coef0) ** self.degree
        return powers
