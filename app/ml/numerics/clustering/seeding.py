"""Initial centres of a clustering: random rows, or rows spread out by k-means++.

Reference: Arthur & Vassilvitskii (2007), SODA: 1027.
"""

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.clustering.compiled.seeding import remaining, take
from app.ml.numerics.neighbours.distances import squared_distances


def canonical_order(x: Matrix) -> Labels:
    """An order of the rows (n,) that depends on their values only, so that their order in the file does not matter.

    Outwards from the middle of the ranges; ties by the columns from the first to the last. Equal rows are neighbours.
    """
    away = ((x - (x.min(axis=0) + x.max(axis=0)) / 2) ** 2).sum(axis=1)
    order = np.argsort(away, kind="stable")
    same = np.diff(away[order]) == 0
    tied = np.append(same, False) | np.insert(same, 0, False)
    rows = order[tied]
    order[tied] = rows[np.lexsort((*x[rows].T[::-1], away[rows]))]
    return order


def seeds(
    x: Matrix, weights: Vector, k: int, rng: np.random.Generator, *, spread: bool = True, candidates: int = 1
) -> Labels:
    """Up to k rows with different values, the first drawn in proportion to the weights (n,).

    Each of the others is drawn in proportion to the weight times, if `spread`, the squared distance to the nearest row
    drawn so far (k-means++). Of several candidates the one that leaves the smallest total is kept.
    Fewer than k come back when there are no more distinct rows.
    """
    chosen = [int(draw(weights, rng, 1)[0])]
    owners, squares = np.zeros(len(x), np.intp), np.full(len(x), np.inf)
    take(x, x[chosen[0]], np.zeros(1), 0, owners, squares)
    while len(chosen) < k and squares.any():
        drawn = draw(weights * (squares if spread else squares > 0), rng, candidates)
        reach = squared_distances(x[drawn], x[chosen]) / 4 * (1 - 1e-7)
        left = np.zeros(candidates)
        remaining(x, weights, x[drawn], reach, owners, squares, left)
        best = int(left.argmin())
        take(x, x[drawn[best]], reach[best], len(chosen), owners, squares)
        chosen.append(int(drawn[best]))
    return np.array(chosen)


def draw(mass: Vector, rng: np.random.Generator, size: int) -> Labels:
    """Rows in proportion to their mass, never one without any."""
    reached = np.cumsum(mass)
    at = np.minimum(rng.random(size) * reached[-1], np.nextafter(reached[-1], 0))
    drawn: Labels = np.searchsorted(reached, at, side="right")
    return drawn
