r"""Places of further items in a map, by their dissimilarities to the known ones: each item by itself.

The place y of an item minimises  Σ wₖ(δₖ − ‖y − xₖ‖)²  over its known dissimilarities. It starts at the best three of a
few places (the one by least squares of the squared distances, and those beside the most similar known item), and then
goes where a Newton step lowers the sum, or where it does not, where a step of majorisation does; the lowest end is
kept. An item without any dissimilarity to a known one (δₖ = 0) has its place; of several such, the best by the sum.

References: Gower (1968), Biometrika 55:582; Borg & Groenen (2005), Modern Multidimensional Scaling, ch. 8.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.linear_algebra.solve import EPS
from app.ml.numerics.maps.compiled.item_pulls import item_equations, item_losses, item_slopes

NUMBERS = 2**21
"""Dissimilarities, times the axes of the map, that are worked on at a time."""

STEPS = 200
"""Steps of one item."""
BESIDE = 3
"""Axes along which places beside the most similar item are tried."""
TRIED = 3
"""Starts of an item that are followed to their ends."""
EXACT = 1e-8
"""Sum of squares, as a share of that at the origin, from which on it falls to rounding of this, not of itself."""
ROUNDING = 16 * EPS
"""Share of the sum that it may fall by rounding alone."""
SAME = 1e-9
"""Dissimilarity, as a share of the largest of an item, that counts as none."""


def place_items(distances: Matrix, known_places: Matrix, weights: Vector) -> Matrix:
    """(b, p) places of items of dissimilarities `distances` (b, n), to items at `known_places` (n, p).

    weights: (n,) of the known items. An item of which nothing is known is at their weighted mean.
    """
    weights, known_columns = weights / weights.max(), np.ascontiguousarray(known_places.T)
    step = max(1, NUMBERS // max(1, known_places.size))
    placed = [
        _placed(distances[start : start + step], known_places, known_columns, weights)
        for start in range(0, len(distances), step)
    ]
    return np.concatenate(placed) if placed else np.zeros((0, known_places.shape[1]))


class _Items(NamedTuple):
    """Further items, and the known ones."""

    wanted: Matrix
    """(b, n) dissimilarities, 0 where unknown."""
    parts: Matrix
    """(b, n) weights, 0 where unknown."""
    known: Matrix
    """(p, n) places."""

    def losses(self, places: Matrix, rows: Labels) -> Vector:
        """(r,) sums of squares of these of the items at places (r, p)."""
        losses = np.empty(len(rows))
        item_losses(np.ascontiguousarray(places), rows, *self, np.empty(self.known.shape[1]), losses)
        return losses


def _placed(distances: Matrix, known_places: Matrix, known_columns: Matrix, weights: Vector) -> Matrix:
    missing = np.isnan(distances)
    parts, wanted = np.where(missing, 0.0, weights), np.where(missing, 0.0, distances)
    same = (wanted <= SAME * wanted.max(axis=1, initial=0.0, keepdims=True)) & (parts > 0)
    places = np.empty((len(distances), known_places.shape[1]))
    alone = ~same.any(axis=1)
    if alone.all():
        return _lowest(_Items(wanted, parts, known_columns))
    if alone.any():
        places[alone] = _lowest(_Items(wanted[alone], parts[alone], known_columns))
    for row in np.flatnonzero(~alone):
        places[row] = _nearest_fit(known_places[same[row]], _Items(wanted[[row]], parts[[row]], known_columns))
    return places


def _nearest_fit(candidates: Matrix, item: _Items) -> Vector:
    if (candidates == candidates[0]).all():
        return np.asarray(candidates[0])
    losses = item.losses(candidates, np.zeros(len(candidates), np.intp))
    return np.asarray(candidates[int(losses.argmin())])


def _lowest(items: _Items) -> Matrix:
    """Places by the best of the starts, as they end."""
    rows = np.arange(len(items.wanted))
    starts = np.stack([_by_squares(items), *_beside(items)])
    losses = np.stack([items.losses(start, rows) for start in starts])
    tried = np.argsort(losses, axis=0, kind="stable")[:TRIED]
    settled = [_settled(starts[start, rows], items) for start in tried]
    best = np.stack([end.losses for end in settled]).argmin(axis=0)
    return np.asarray(np.stack([end.places for end in settled])[best, rows])


def _by_squares(items: _Items) -> Matrix:
    """Least squares of the squared distances."""
    b, (p, n) = len(items.wanted), items.known.shape
    middles, right, matrices = np.empty((b, p)), np.empty((b, p)), np.empty((b, p, p))
    item_equations(*items, np.empty(n), middles, right, matrices)
    return middles + _solved(matrices, right)


def _beside(items: _Items) -> Iterator[Matrix]:
    nearest = np.where(items.parts > 0, items.wanted, np.inf).argmin(axis=1)
    away = items.wanted[np.arange(len(nearest)), nearest]
    for axis in range(min(BESIDE, len(items.known))):
        for sign in (1.0, -1.0):
            tried = items.known[:, nearest].T.copy()
            tried[:, axis] += sign * away
            yield tried


class _Settled(NamedTuple):
    places: Matrix
    losses: Vector


def _settled(places: Matrix, items: _Items) -> _Settled:
    left = np.arange(len(places))
    losses = items.losses(places, left)
    least = EXACT * np.vecdot(items.parts, np.square(items.wanted))
    total = np.maximum(items.parts.sum(axis=1), np.finfo(float).tiny)
    for _ in range(STEPS):
        before = losses[left]
        newton, slope = _newton_steps(places[left], left, items)
        places[left], losses[left] = _where_lower(newton, left, places[left], before, items)
        stuck = left[losses[left] >= before]
        majorised = places[stuck] - slope[losses[left] >= before] / total[stuck, None]
        places[stuck], losses[stuck] = _where_lower(majorised, stuck, places[stuck], losses[stuck], items)
        left = left[before - losses[left] > ROUNDING * np.maximum(before, least[left])]
        if not left.size:
            break
    return _Settled(places, losses)


def _where_lower(tried: Matrix, rows: Labels, places: Matrix, losses: Vector, items: _Items) -> tuple[Matrix, Vector]:
    """Places (r, p) and losses (r,) of these of the items, at tried places where that lowers the loss."""
    after = items.losses(tried, rows)
    lower = after < losses
    return np.where(lower[:, None], tried, places), np.where(lower, after, losses)


def _newton_steps(places: Matrix, rows: Labels, items: _Items) -> tuple[Matrix, Matrix]:
    """Places after a Newton step, and slopes (r, p) before."""
    (r, p), n = places.shape, items.known.shape[1]
    slope, curvature = np.empty((r, p)), np.empty((r, p, p))
    item_slopes(places, rows, *items, np.empty((2, n)), slope, curvature)
    return places - _solved(curvature, slope), slope


def _solved(matrices: Matrix, right: Matrix) -> Matrix:
    """Solutions (b, p) of symmetric systems (b, p, p), of least length where they are singular.

    Eigenvalues below 0 count by their size: where a function bends downwards a Newton step goes down, not up.
    """
    values, vectors = np.linalg.eigh(matrices)
    sizes = np.abs(values)
    least = 1e-12 * sizes.max(axis=1, initial=0.0, keepdims=True)
    inverse = np.divide(1.0, sizes, out=np.zeros_like(sizes), where=sizes > least)
    along = np.matmul(np.swapaxes(vectors, 1, 2), right[:, :, None])
    return np.asarray(np.matmul(vectors, inverse[:, :, None] * along)[:, :, 0])
