"""Grid of the cells of a map: square, with four neighbours of a cell inside it, or hexagonal, with six.

Cells are numbered row by row. Neighbours are at distance 1; odd rows of a hexagonal grid are half a cell to the right.
A Gaussian neighbourhood is a product of one in x and one in y, so sums over all cells are sums over a row and then over
a column: O(height + width) for each cell, and no matrix of all pairs of cells.
"""

import math
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels, Matrix, Vector

RISE = math.sqrt(0.75)
"""Distance of two rows of a hexagonal grid."""


class Grid(NamedTuple):
    height: int
    """Rows of cells."""
    width: int
    """Cells of a row."""
    hexagonal: bool

    @property
    def cells(self) -> int:
        return self.height * self.width

    @property
    def rise(self) -> float:
        """Distance of two rows."""
        return RISE if self.hexagonal else 1.0

    @property
    def positions(self) -> Matrix:
        """(m, 2) x and y of each cell; y grows with the row."""
        row, column = np.divmod(np.arange(self.cells), self.width)
        return np.stack([column + self.shift * (row % 2), row * self.rise], axis=1)

    @property
    def shift(self) -> float:
        """Distance by which odd rows stand to the right."""
        return 0.5 if self.hexagonal else 0.0

    @property
    def pairs(self) -> Labels:
        """(e, 2) adjacent cells, the smaller number first, ascending."""
        cell = np.arange(self.cells).reshape(self.height, self.width)
        neighbours = [(cell[:, :-1], cell[:, 1:]), (cell[:-1], cell[1:])]
        if self.hexagonal:  # from even rows down to the left, from odd rows down to the right
            neighbours += [(cell[:-1:2, 1:], cell[1::2, :-1]), (cell[1:-1:2, :-1], cell[2::2, 1:])]
        both = np.concatenate([np.stack([first.ravel(), other.ravel()], axis=1) for first, other in neighbours])
        return np.asarray(both[np.lexsort(both.T[::-1])])

    def adjacent(self, first: Labels, second: Labels) -> NDArray[np.bool_]:
        """True where two cells (n,) are at distance 1."""
        steps_between = self.positions[first] - self.positions[second]
        return np.asarray(np.abs(np.square(steps_between).sum(axis=1) - 1) < 1e-9)

    def spread(self, values: Matrix, radius: float) -> Matrix:
        """(m, d) sums over all cells c of exp(−D²/(2·radius²)) times the values (m, d) of c, D the distance to c."""
        rows = values.reshape(self.height, self.width, -1)
        along = self.rise * np.arange(self.height, dtype=np.float64)
        down = bell(along[:, None] - along, radius)
        if not self.hexagonal:
            return np.asarray(_combined(down, self._across(0.0, radius), rows).reshape(values.shape))
        rows_spread = np.zeros_like(rows)
        for to, start in product((0, 1), repeat=2):
            across = self._across(self.shift * (to - start), radius)
            rows_spread[to::2] += _combined(down[to::2, start::2], across, rows[start::2])
        return rows_spread.reshape(values.shape)

    def _across(self, shift: float, radius: float) -> Matrix:
        along = np.arange(self.width, dtype=np.float64)
        return bell(along[:, None] - along + shift, radius)


def bell(distances: NDArray[np.float64], radius: float) -> NDArray[np.float64]:
    """exp(−D²/(2·radius²)) of distances D."""
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        return np.asarray(np.exp(-np.square(distances / radius) / 2))


def _combined(down: Matrix, across: Matrix, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums over rows and columns: rows (h, w, d), down (g, h), across (w, w)."""
    height, width, d = rows.shape
    summed = (down @ rows.reshape(height, width * d)).reshape(-1, width, d)
    return np.asarray(np.matmul(across, summed))


def steps(grid: Grid, prototypes: Matrix) -> Vector:
    """(e,) distances of the prototypes (m, d) of adjacent cells, in the order of `grid.pairs`."""
    pairs = grid.pairs
    return np.asarray(np.linalg.norm(prototypes[pairs[:, 0]] - prototypes[pairs[:, 1]], axis=1))


def u_matrix(grid: Grid, prototypes: Matrix) -> Vector:
    """(m,) mean distance of each prototype to those of the adjacent cells; 0 in a grid of one cell."""
    pairs, distances = grid.pairs, steps(grid, prototypes)
    both = np.concatenate([pairs[:, 0], pairs[:, 1]])
    sums = np.bincount(both, np.concatenate([distances, distances]), grid.cells)
    return np.asarray(sums / np.maximum(np.bincount(both, minlength=grid.cells), 1))
