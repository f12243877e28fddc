"""Few columns that follow the targets together, chosen one by one, and the ridge on them.

Each step takes the column that leaves the least of the targets' squares, by Gram-Schmidt on what is left of them all.

Reference: Chen, Billings & Luo (1989), Int. J. Control 50:1873 (orthogonal least squares).
"""

from typing import NamedTuple, Self

import numpy as np

from app.ml.contract.algorithm import Data, Labels, Matrix, Vector
from app.ml.numerics.linear_algebra.solve import EPS

DEPENDENT = 1e-8
"""A column of which less than this share of its squares is its own adds nothing to the chosen ones."""

MIN_COLUMN_SIZE = 1e-280
"""A column of smaller numbers counts as constant: coefficients would be too large for a number."""


class Standard(NamedTuple):
    """The numeric columns of some rows, of mean 0 and deviation 1, and their targets, of mean 0; times √weight."""

    columns: Labels
    """(p,) which they are: those that vary."""
    mean: Vector
    """(p,)"""
    deviation: Vector
    """(p,)"""
    x: Matrix
    """(n, p); a missing value is at the mean."""
    y: Matrix
    """(n, k)"""

    @classmethod
    def of(cls, data: Data) -> Self:
        columns = np.flatnonzero(data.levels == 0)
        x = data.x[:, columns]
        is_present = ~np.isnan(x)
        weights = data.weights[:, None] * is_present
        mass = np.maximum(weights.sum(axis=0), np.finfo(np.float64).tiny)
        size = np.maximum(np.abs(np.where(is_present, x, 0.0)).max(axis=0, initial=0.0), MIN_COLUMN_SIZE)
        near_one = np.where(is_present, x, 0.0) / size  # its squares are numbers, whatever the unit
        mean = (weights * near_one).sum(axis=0) / mass
        centred_rows = np.where(is_present, near_one - mean, 0.0)
        spread = np.sqrt((weights * centred_rows**2).sum(axis=0) / mass)
        varies = spread > 4 * EPS
        columns, mean, deviation = columns[varies], (mean * size)[varies], (spread * size)[varies]
        root = np.sqrt(data.weights)[:, None]
        y = data.targets - data.weights @ data.targets / data.weights.sum()
        return cls(columns, mean, deviation, root * centred_rows[:, varies] / spread[varies], root * y)

    def chosen(self, most: int) -> tuple[Labels, Vector]:
        """Up to so many columns (s,), by their places in `columns`, in the order taken; and the squares left before
        each and after all (s + 1,).
        """
        residual_columns, left = self.x.copy(), self.y.copy()
        whole = (residual_columns**2).sum(axis=0)
        places: list[int] = []
        squares = [float((left**2).sum())]
        for _ in range(min(most, self.columns.size)):
            residual_squares = (residual_columns**2).sum(axis=0)
            free = residual_squares > DEPENDENT * whole
            taken = np.where(
                free, ((residual_columns.T @ left) ** 2).sum(axis=1) / np.where(free, residual_squares, 1.0), 0.0
            )
            best = int(taken.argmax())
            if taken[best] <= 4 * EPS * squares[0]:
                break
            unit = residual_columns[:, best] / np.sqrt(residual_squares[best])
            residual_columns -= np.outer(unit, unit @ residual_columns)
            left -= np.outer(unit, unit @ left)
            places.append(best)
            squares.append(float((left**2).sum()))
        return np.array(places, np.intp), np.array(squares)

    def ridge(self, places: Labels, penalty: float) -> Matrix:
        """(s, k) coefficients of these columns of x that minimise the squares left of y plus penalty · ‖coef‖²."""
        x = self.x[:, places]
        return np.asarray(np.linalg.solve(x.T @ x + penalty * np.eye(places.size), x.T @ self.y), np.float64)
