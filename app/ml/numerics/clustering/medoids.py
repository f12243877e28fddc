"""Medoids: rows whose dissimilarities to all others, each to the nearest of them, add up to little.

A start draws rows far from each other; then a row takes the place of a medoid wherever this lowers the sum, until no
single swap does. Dissimilarities are kept in memory where they fit into KEPT numbers, and else are computed again, a
block of rows at a time, in every pass.

References: Kaufman & Rousseeuw (1990), Finding Groups in Data, ch. 2; Schubert & Rousseeuw (2021), Inf. Syst.
101:101804.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import scipy

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.clustering.compiled import medoid_swaps
from app.ml.numerics.clustering.seeding import draw
from app.ml.numerics.neighbours.compiled.distances import from_products
from app.ml.numerics.neighbours.distances import norms

KEPT = 2**25
"""Dissimilarities that are kept: 256 MiB."""
BLOCK = 2**18
"""Dissimilarities that are computed at a time."""
LEAST_ROWS = 16
"""Rows that are computed at a time, however many there are: a product of a matrix and one row is slow."""


class Block(Protocol):
    def __call__(self, rows: slice, /) -> Matrix:
        """(b, n) dissimilarities of these rows to all."""


def between_points(points: Matrix, p: float, power: float) -> Block:
    """Minkowski distances of points (n, r), each to the power."""
    if p == 2:
        return _euclidean(points, power)
    metric = {1: {"metric": "cityblock"}, np.inf: {"metric": "chebyshev"}}.get(p, {"metric": "minkowski", "p": p})

    def block(rows: slice) -> Matrix:
        distances = scipy.spatial.distance.cdist(points[rows], points, **metric)
        return np.asarray(distances if power == 1 else distances**power)

    return block


def _euclidean(points: Matrix, power: float) -> Block:
    points = points - points.mean(axis=0)  # products of short rows lose fewer digits
    lengths = norms(points)

    def block(rows: slice) -> Matrix:
        products = points[rows] @ points.T
        from_products(products, points, lengths, rows.start, power == 1, products)
        return products if power <= 2 else products ** (power / 2)

    return block


def of_square(square: Matrix, order: Labels, scale: float, power: float) -> Block:
    """Given dissimilarities (m, m) of the rows in this order (n,), in units of `scale`, each to the power."""
    return lambda rows: np.asarray((square[np.ix_(order[rows], order)] / scale) ** power)


class Dissimilarities:
    """Dissimilarities of n rows that weigh (n,)."""

    def __init__(self, block: Block, weights: Vector) -> None:
        self._block, self.weights, self.n = block, weights, len(weights)

    @cached_property
    def _kept(self) -> Matrix | None:
        if self.n * self.n > KEPT:
            return None
        matrix = np.empty((self.n, self.n))
        for rows in self._slices():
            matrix[rows] = self._block(rows)
        return matrix

    def rows(self, rows: slice) -> Matrix:
        return self._block(rows) if self._kept is None else self._kept[rows]

    def blocks(self) -> Iterator[tuple[int, Matrix]]:
        """First row and dissimilarities (b, n) of each block."""
        return ((rows.start, self.rows(rows)) for rows in self._slices())

    def _slices(self) -> Iterator[slice]:
        step = max(LEAST_ROWS, BLOCK // self.n)
        return (slice(start, start + step) for start in range(0, self.n, step))


class Run(NamedTuple):
    medoids: Labels
    """(k,) rows, ascending."""
    loss: list[float]
    """Weighted sum of the dissimilarities to the nearest medoid: of the start, then after each pass over all rows."""
    converged: bool
    """No swap of a medoid with another row is better."""


def search(dissimilarities: Dissimilarities, k: int, rng: np.random.Generator, max_iter: int) -> Run:
    """One start of at most k medoids and its swaps; fewer where there are no more rows apart from each other.

    max_iter: passes over all rows.
    """
    if k == 1:
        return _single(dissimilarities)
    medoids, far = _start(dissimilarities, k, rng)
    n, count = dissimilarities.n, len(medoids)
    places, lowest, losses = np.empty((2, n), np.intp), np.empty((2, n)), np.empty(count)
    loss = float(medoid_swaps.begin(far, dissimilarities.weights, places, lowest, losses))
    curve, idle = [loss], 0 if count > 1 else n
    while idle < n and len(curve) <= max_iter:
        for start, block in dissimilarities.blocks():
            to = dissimilarities.weights, medoids, far, places, lowest, losses
            idle, loss = medoid_swaps.swaps(block, start, *to, idle, loss)
            if idle >= n:
                break
        curve.append(float(loss))
    return Run(np.sort(medoids), curve, bool(idle >= n))


def _single(dissimilarities: Dissimilarities) -> Run:
    sums = np.concatenate([block @ dissimilarities.weights for _, block in dissimilarities.blocks()])
    best = int(sums.argmin())
    return Run(np.array([best]), [float(sums[best])], converged=True)


def _start(dissimilarities: Dissimilarities, k: int, rng: np.random.Generator) -> tuple[Labels, Matrix]:
    """(k,) different rows and their dissimilarities (k, n) to all: the first drawn by weight, each other by weight
    times the dissimilarity to the nearest row drawn before.
    """
    k = min(k, dissimilarities.n)
    chosen, far = np.empty(k, np.intp), np.empty((k, dissimilarities.n))
    nearest = np.ones(dissimilarities.n)
    for count in range(k):
        mass = dissimilarities.weights * nearest
        if not mass.any():
            return chosen[:count], far[:count].copy()
        row = int(draw(mass, rng, 1)[0])
        chosen[count], far[count] = row, dissimilarities.rows(slice(row, row + 1))[0]
        nearest = np.minimum(nearest, far[count]) if count else far[0].copy()
    return chosen, far
