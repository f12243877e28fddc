"""Initial centres of a clustering: random rows, or rows spread out by k-means++.

Reference: Arthur & Vassilvitskii (2007), SODA: 1027.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import Data, Labels, Matrix, Vector
from app.ml.numerics.clustering.compiled.seeding import remaining
from app.ml.numerics.neighbours.distances import norms
from app.ml.numerics.row_blocks import blocks

KEPT = 2**20
"""Numbers of rows less their origin that are kept from one draw to the next."""


def numbers_of(data: Data) -> Labels:
    """(n,) numbers of the rows in the dataset, else among the training rows."""
    return np.arange(len(data.x)) if data.numbers is None else data.numbers


def in_canonical_order(data: Data) -> Data:
    """The rows with their numbers, in an order that depends on their values only."""
    return replace(data, numbers=numbers_of(data)).take(canonical_order(data.x))


def canonical_order(x: Matrix) -> Labels:
    """An order of the rows (n,) that depends on their values only, so that their order in the file does not matter.

    Outwards from the middle of the ranges; ties by the columns from the first to the last. Equal rows are neighbours.
    """
    away = ((x - (x.min(axis=0) + x.max(axis=0)) / 2) ** 2).sum(axis=1)
    order: Labels = np.argsort(away, kind="stable")
    parts = np.diff(away[order]) != 0
    for column in range(x.shape[1]):
        tied = np.flatnonzero(~np.insert(parts, 0, True) | ~np.append(parts, True))
        if not tied.size:
            break
        rows = order[tied]
        if np.ptp(x[rows, column]) > 0:
            groups = np.insert(np.cumsum(parts), 0, 0)[tied]
            order[tied] = rows[np.lexsort((x[rows, column], groups))]
            parts |= np.diff(x[order, column]) != 0
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
    origin = x[chosen[0]]
    squares = norms(x - origin)
    rows = _Rows(x, weights, origin, squares, x - origin if x.size <= KEPT else None)
    while len(chosen) < k and squares.any():
        drawn = draw(weights * (squares if spread else squares > 0), rng, candidates)
        left, totals = _left(rows, squares, x[drawn])
        best = int(totals.argmin())
        squares = np.ascontiguousarray(left[:, best])
        chosen.append(int(drawn[best]))
    return np.array(chosen)


class _Rows(NamedTuple):
    x: Matrix
    weights: Vector
    origin: Vector
    lengths: Vector
    """(n,) squared distances to the origin."""
    moved: Matrix | None
    """The rows less the origin, if there are few."""


def _left(rows: _Rows, squares: Vector, new: Matrix) -> tuple[Matrix, Vector]:
    """(n, c) squared distances to the nearest chosen row when each of the new ones (c, d) is added, and their weighted
    sums (c,).
    """
    x, weights, origin, lengths, kept = rows
    left, totals, moved = np.empty((len(x), len(new))), np.zeros(len(new)), new - origin
    new_lengths = norms(moved)
    for block in blocks(len(x), x.shape[1]):
        products = (x[block] - origin if kept is None else kept[block]) @ moved.T
        remaining.lean(x, weights, lengths, squares, new, new_lengths, products, block.start, left, totals)
    return left, totals


def draw(mass: Vector, rng: np.random.Generator, size: int) -> Labels:
    """Rows in proportion to their mass, never one without any."""
    reached = np.cumsum(mass)
    at = np.minimum(rng.random(size) * reached[-1], np.nextafter(reached[-1], 0))
    drawn: Labels = np.searchsorted(reached, at, side="right")
    return drawn
