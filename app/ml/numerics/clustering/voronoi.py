"""Voronoi cells of centres: pairs that touch, and in the plane their walls (LION 12)."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from app.ml.contract.algorithm import Matrix
from app.ml.numerics.neighbours.distances import squared_distances

Pairs = NDArray[np.intp]


class Wall(NamedTuple):
    """A segment of the line of equal distance to two centres."""

    cells: tuple[int, int]
    points: list[list[float]]
    """Its two ends, or its only one."""
    direction: list[float] | None = None
    """Direction of a wall with one end, which is unbounded."""


def neighbours(centres: Matrix) -> Pairs:
    """Pairs i < j of cells (m, 2) that share the point half-way between their centres (the Gabriel graph).

    No centre m lies in the ball between i and j: d²(i, j) ≤ d²(i, m) + d²(j, m) for all m.
    """
    squares = squared_distances(centres, centres)
    touching = [(squares[i] <= (squares[i] + squares).min(axis=1)) for i in range(len(centres))]
    return np.argwhere(np.triu(np.reshape(touching, (len(centres), -1)), 1))


def walls(centres: Matrix) -> list[Wall]:
    """All walls between the cells of distinct centres (k, 2) in the plane."""
    if np.linalg.matrix_rank(centres - centres[0]) < 2:
        return _parallel_walls(centres)
    diagram = scipy.spatial.Voronoi(centres)
    middle = centres.mean(axis=0)
    drawn = []
    for (i, j), ends in zip(diagram.ridge_points, diagram.ridge_vertices, strict=True):
        points = [diagram.vertices[end].tolist() for end in ends if end >= 0]
        cells = (int(min(i, j)), int(max(i, j)))
        if len(points) == 2:
            drawn.append(Wall(cells, points))
        else:
            along = _normal(centres[i], centres[j])
            outward = along if along @ ((centres[i] + centres[j]) / 2 - middle) >= 0 else -along
            drawn.append(Wall(cells, points, outward.tolist()))
    return sorted(drawn)


def _parallel_walls(centres: Matrix) -> list[Wall]:
    """Centres on one line: each two that follow each other share a whole line, given as two rays."""
    order = np.lexsort(centres.T[::-1])
    drawn = []
    for i, j in pairwise(order):
        middle, along = (centres[i] + centres[j]) / 2, _normal(centres[i], centres[j])
        cells = (int(min(i, j)), int(max(i, j)))
        drawn += [Wall(cells, [middle.tolist()], way.tolist()) for way in (along, -along)]
    return sorted(drawn)


def _normal(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    across = (b - a) / np.linalg.norm(b - a)
    return np.array([-across[1], across[0]])
