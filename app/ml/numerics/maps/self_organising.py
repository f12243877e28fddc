"""Self-organising maps: prototypes in the cells of a grid, fitted so that adjacent cells have similar ones.

References: Kohonen (1982), Biol. Cybern. 43:59; Kohonen (2001), Self-Organizing Maps, 3rd ed.; LION ch. 14.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.clustering.seeding import draw
from app.ml.numerics.maps.compiled.online import online
from app.ml.numerics.maps.grid import Grid
from app.ml.numerics.neighbours.distances import nearest
from app.ml.numerics.neighbours.nearest import neighbours

MIN_WEIGHT_SHARE = 1e-200
"""Share of the largest weight of a cell below which no row is near it, and its prototype stays."""


class Schedule(NamedTuple):
    """Radius of the neighbourhood during a fit, and share by which prototypes move towards a row."""

    epochs: int
    """Passes over the rows."""
    first: float
    """Radius at the start, in cells."""
    last: float
    """Radius at the end."""
    exponential: bool
    scale: float = 1.0
    offset: float = 20.0

    def radii(self, done: Vector) -> Vector:
        """(t,) at these shares of the fit, from 0 to 1. Eq. 14.5: ((T − t)·first + t·last)/T."""
        if self.exponential:
            return np.asarray(self.first * (self.last / self.first) ** done)
        return np.asarray((1 - done) * self.first + done * self.last)

    def steps(self, rows: Vector) -> Vector:
        """(t,) at these numbers of rows seen before: scale/(offset + t), at most 1."""
        return np.minimum(self.scale / (self.offset + rows), 1.0)


class Rows(NamedTuple):
    x: Matrix
    weights: Vector

    def drawn(self, rng: np.random.Generator, count: int) -> Labels:
        """Numbers of rows in proportion to their weights."""
        return draw(self.weights, rng, count)


class Epoch(NamedTuple):
    prototypes: Matrix
    """(m, d) after it."""
    error: float
    """Mean distance of the rows to the nearest prototype before it."""


def batch_epochs(rows: Rows, grid: Grid, prototypes: Matrix, schedule: Schedule) -> Iterator[Epoch]:
    """Each prototype becomes the mean of the rows, which count by the neighbourhood of their cells. Eq. 14.3.

    With a radius near 0 this is a step of k-means.
    """
    for radius in schedule.radii(np.arange(schedule.epochs) / schedule.epochs):
        labels, squares = nearest(rows.x, prototypes)
        error = float(np.average(np.sqrt(squares), weights=rows.weights))
        prototypes = batch_step(rows, grid, prototypes, labels, float(radius))
        yield Epoch(prototypes, error)


def batch_step(rows: Rows, grid: Grid, prototypes: Matrix, labels: Labels, radius: float) -> Matrix:
    """labels: (n,) cells of the rows. A cell without any row near keeps its prototype."""
    n, m = len(labels), grid.cells
    membership = scipy.sparse.csr_array((rows.weights, (labels, np.arange(n))), (m, n))
    mass = grid.spread(np.bincount(labels, rows.weights, m).astype(np.float64)[:, None], radius)
    sums = grid.spread(membership @ rows.x, radius)
    near = mass[:, 0] > MIN_WEIGHT_SHARE * mass.max()
    return np.where(near[:, None], sums / np.where(near[:, None], mass, 1.0), prototypes)


def online_epochs(
    rows: Rows, grid: Grid, prototypes: Matrix, schedule: Schedule, rng: np.random.Generator
) -> Iterator[Epoch]:
    """Rows drawn at random, one at a time; an epoch has as many as there are."""
    n, columns = len(rows.x), np.ascontiguousarray(prototypes.T)
    for epoch in range(schedule.epochs):
        before = np.ascontiguousarray(columns.T)
        error = float(np.average(np.sqrt(nearest(rows.x, before)[1]), weights=rows.weights))
        seen = np.arange(epoch * n, (epoch + 1) * n, dtype=np.float64)
        moves = schedule.steps(seen), schedule.radii(seen / (schedule.epochs * n))
        online(rows.x, rows.drawn(rng, n), *moves, grid.width, grid.shift, grid.rise, columns)
        yield Epoch(np.ascontiguousarray(columns.T), error)


class Places(NamedTuple):
    """Cells of rows."""

    nearest: Labels
    """(n,) cell with the nearest prototype, the first of equally near ones."""
    second: Labels
    """(n,) cell with the second nearest one; the same in a map of one cell."""
    distance: Vector
    """(n,) to the nearest prototype."""

    def torn(self, grid: Grid) -> Vector:
        """(n,) 1 where the two cells are not adjacent, else 0; 0 in a map of one cell."""
        is_torn = ~grid.adjacent(self.nearest, self.second) & (self.nearest != self.second)
        return np.asarray(is_torn, np.float64)


def places(x: Matrix, prototypes: Matrix) -> Places:
    nearest, distances = neighbours(x, prototypes, 2)
    return Places(nearest[:, 0], nearest[:, -1], distances[:, 0])
