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

SMALLEST = 1e-280
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
        known = ~np.isnan(x)
        weights = data.weights[:, None] * known
        mass = np.maximum(weights.sum(axis=0), np.finfo(np.float64).tiny)
        size = np.maximum(np.abs(np.where(known, x, 0.0)).max(axis=0, initial=0.0), SMALLEST)
        near_one = np.where(known, x, 0.0) / size  # its squares are numbers, whatever the unit
        mean = (weights * near_one).sum(axis=0) / mass
        rest = np.where(known, near_one - mean, 0.0)
        spread = np.sqrt((weights * rest**2).sum(axis=0) / mass)
        varies = spread > 4 * EPS
        columns, mean, deviation = columns[varies], (mean * size)[varies], (spread * size)[varies]
        root = np.sqrt(data.weights)[:, None]
        y = data.targets - data.weights @ data.targets / data.weights.sum()
        return cls(columns, mean, deviation, root * rest[:, varies] / spread[varies], root * y)

    def chosen(self, most: int) -> tuple[Labels, Vector]:
        """Up to so many columns (s,), by their places in `columns`, in the order taken; and the squares left before
        each and after all (s + 1,).
        """
        rest, left = self.x.copy(), self.y.copy()
        whole = (rest**2).sum(axis=0)
        places: list[int] = []
        squares = [float((left**2).sum())]
        for _ in range(min(most, self.columns.size)):
            own = (rest**2).sum(axis=0)
            free = own > DEPENDENT * whole
            taken = np.where(free, ((rest.T @ left) ** 2).sum(axis=1) / np.where(free, own, 1.0), 0.0)
            best = int(taken.argmax())
            if taken[best] <= 4 * EPS * squares[0]:
                break
            unit = rest[:, best] / np.sqrt(own[best])
            rest -= np.outer(unit, unit @ rest)
            left -= np.outer(unit, unit @ left)
            places.append(best)
            squares.append(float((left**2).sum()))
        return np.array(places, np.intp), np.array(squares)

    def ridge(self, places: Labels, penalty: float) -> Matrix:
        """(s, k) coefficients of these columns of x that minimise the squares left of y plus penalty · ‖coef‖²."""
        x = self.x[:, places]
        return np.asarray(np.linalg.solve(x.T @ x + penalty * np.eye(places.size), x.T @ self.y), np.float64)
