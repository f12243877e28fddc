"""Initial centres of a clustering: random rows, or rows spread out by k-means++.

Reference: Arthur & Vassilvitskii (2007), SODA: 1027.
"""

from dataclasses import replace
from typing import NamedTuple, Self

import numpy as np

from app.ml.contract.algorithm import Data, Labels, Matrix, Vector
from app.ml.numerics.clustering.compiled.seeding import remaining
from app.ml.numerics.neighbours.distances import norms
from app.ml.numerics.row_blocks import BLOCK, blocks

KEPT = 2**20
"""Numbers of rows less their origin that are kept from one draw to the next."""
SAMPLE = 256
"""Rows that show where the table lies."""
ROWS_OF_PRODUCTS = 2**11
"""Rows whose products with the new ones are computed at a time."""


def numbers_of(data: Data) -> Labels:
    """(n,) numbers of the rows in the dataset, else among the training rows."""
    return np.arange(len(data.x)) if data.numbers is None else data.numbers


def in_canonical_order(data: Data) -> Data:
    """The rows with their numbers, in an order that depends on their values only."""
    return replace(data, numbers=numbers_of(data)).take(canonical_order(data.x))


def canonical_order(x: Matrix) -> Labels:
    """An order of the rows (n,) that depends on their values only, so that their order in the file does not matter.

    Outwards from the middle of the ranges; ties by the columns from the first to the last. Equal rows are neighbours,
    in their order in the file.
    """
    middle = (x.min(axis=0) + x.max(axis=0)) / 2
    away = _squares(x, middle)
    order: Labels = np.argsort(away)
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
    else:
        tied = np.flatnonzero(~np.insert(parts, 0, True) | ~np.append(parts, True))
        order[tied] = order[tied][np.lexsort((order[tied], np.insert(np.cumsum(parts), 0, 0)[tied]))]
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
    rows = _Rows.about(x, x[chosen[0]])
    squares = _squares(x, x[chosen[0]])
    while len(chosen) < k and squares.any():
        drawn = draw(weights * (squares if spread else squares > 0), rng, candidates)
        left = _left(rows, squares, x[drawn])
        best = int((left @ weights).argmin())
        squares = left[best]
        chosen.append(int(drawn[best]))
    return np.array(chosen)


class _Rows(NamedTuple):
    x: Matrix
    origin: Vector
    """Products are of rows less this: a row, or zero where the rows lie about it."""
    lengths: Vector
    """(n,) squared distances to the origin."""
    moved: Matrix | None
    """The rows less the origin, if there are few or it is zero."""

    @classmethod
    def about(cls, x: Matrix, origin: Vector) -> Self:
        sample = x[:: -(-len(x) // SAMPLE)]
        mean = sample.mean(axis=0)
        if mean @ mean <= np.square(sample - mean).sum() / len(sample):
            return cls(x, np.zeros(len(origin)), norms(x), x)
        return cls(x, origin, _squares(x, origin), x - origin if x.size <= KEPT else None)


def _left(rows: _Rows, squares: Vector, new: Matrix) -> Matrix:
    """(c, n) squared distances to the nearest chosen row when each of the new ones (c, d) is added."""
    x, origin, lengths, single = rows
    left, moved = np.empty((len(new), len(x))), new - origin
    new_lengths = norms(moved)
    for block in blocks(len(x), BLOCK // ROWS_OF_PRODUCTS if single is not None else x.shape[1]):
        products = moved @ (x[block] - origin if single is None else single[block]).T
        remaining.lean(x, lengths, squares, new, new_lengths, products, block.start, left)
    return left


def _squares(x: Matrix, point: Vector) -> Vector:
    """(n,) squared distances to a point."""
    return np.concatenate([norms(x[block] - point) for block in blocks(len(x), x.shape[1])])


def draw(mass: Vector, rng: np.random.Generator, size: int) -> Labels:
    """Rows in proportion to their mass, never one without any."""
    reached = np.cumsum(mass)
    positions = np.minimum(rng.random(size) * reached[-1], np.nextafter(reached[-1], 0))
    drawn: Labels = np.searchsorted(reached, positions, side="right")
    return drawn
