"""A function that training rows determine in part: its mean and variance at each row, and covariances between rows."""

from typing import Protocol

from app.ml.contract.data import Matrix, Vector


class RandomFunction(Protocol):
    """A normal random function of the prepared columns, in the units of the target."""

    @property
    def rows(self) -> Matrix:
        """(m, d) the rows that determine it: the training rows, or the inducing points of a sparse posterior."""

    @property
    def noise(self) -> float:
        """Variance that one measurement of weight 1 adds to the value of the function."""

    def mean(self, x: Matrix) -> Vector:
        """(n,) for rows (n, d)."""

    def variance(self, x: Matrix) -> Vector:
        """(n,) for rows (n, d), without noise."""

    def covariance(self, x: Matrix, y: Matrix) -> Matrix:
        """(n, m) for rows (n, d) and (m, d), without noise."""
