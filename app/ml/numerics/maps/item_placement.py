r"""Places of further items in a map, by their dissimilarities to the known ones: each item by itself.

The place y of an item minimises  Σ wₖ(δₖ − ‖y − xₖ‖)²  over its known dissimilarities. It starts at the best three of a
few places (the one by least squares of the squared distances, and those beside the most similar known item), and then
goes where a Newton step or a step of majorisation lowers the sum more, so that the sum never rises; the lowest end is
kept. An item without any dissimilarity to a known one (δₖ = 0) has its place; of several such, the best by the sum.

References: Gower (1968), Biometrika 55:582; Borg & Groenen (2005), Modern Multidimensional Scaling, ch. 8.
"""

from collections.abc import Iterator

import numpy as np

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.linear_algebra.solve import EPS
from app.ml.numerics.row_blocks import BLOCK

STEPS = 200
"""Steps of one item."""
BESIDE = 3
"""Axes along which places beside the most similar item are tried."""
TRIED = 3
"""Starts of an item that are followed to their ends."""
EXACT = 1e-8
"""Sum of squares, as a share of that at the origin, from which on it falls to rounding of this, not of itself."""
SAME = 1e-9
"""Dissimilarity, as a share of the largest of an item, that counts as none."""


def place_items(given: Matrix, known: Matrix, weights: Vector) -> Matrix:
    """(b, p) places of items with dissimilarities `given` (b, n), NaN where unknown, to items at `known` (n, p).

    weights: (n,) of the known items. An item of which nothing is known is at their weighted mean.
    """
    weights = weights / weights.max()
    step = max(1, 4 * BLOCK // max(1, known.size))
    placed = [_placed(given[start : start + step], known, weights) for start in range(0, len(given), step)]
    return np.concatenate(placed) if placed else np.zeros((0, known.shape[1]))


def _placed(given: Matrix, known: Matrix, weights: Vector) -> Matrix:
    parts = np.where(np.isnan(given), 0.0, weights)
    wanted = np.where(np.isnan(given), 0.0, given)
    same = (wanted <= SAME * wanted.max(axis=1, initial=0.0, keepdims=True)) & (parts > 0)
    places = np.empty((len(given), known.shape[1]))
    alone = ~same.any(axis=1)
    if alone.any():
        places[alone] = _lowest(wanted[alone], known, parts[alone])
    for row in np.flatnonzero(~alone):
        places[row] = _nearest_fit(known[same[row]], wanted[row], known, parts[row])
    return places


def _nearest_fit(candidates: Matrix, wanted: Vector, known: Matrix, parts: Vector) -> Vector:
    if (candidates == candidates[0]).all():
        return np.asarray(candidates[0])
    rows = len(candidates)
    losses = _losses(candidates, np.broadcast_to(wanted, (rows, wanted.size)), known, parts)
    return np.asarray(candidates[int(losses.argmin())])


def _lowest(wanted: Matrix, known: Matrix, parts: Matrix) -> Matrix:
    """Places by the best of the starts, as they end."""
    starts = np.stack([_by_squares(wanted, known, parts), *_beside(wanted, known, parts)])
    losses = np.stack([_losses(start, wanted, known, parts) for start in starts])
    tried, rows = np.argsort(losses, axis=0, kind="stable")[:TRIED], np.arange(len(wanted))
    ends = np.stack([_settled(starts[one, rows], wanted, known, parts) for one in tried])
    losses = np.stack([_losses(end, wanted, known, parts) for end in ends])
    return np.asarray(ends[losses.argmin(axis=0), rows])


def _by_squares(wanted: Matrix, known: Matrix, parts: Matrix) -> Matrix:
    """Least squares of  ‖xₖ‖² − δₖ² = 2xₖy − ‖y‖²,  about the means of what each item knows."""
    share = parts / np.maximum(parts.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    middle = _sums(share[:, :, None] * known)
    away = known - middle[:, None]
    squares = np.square(away).sum(axis=2) - np.square(wanted)
    right = _sums(share[:, :, None] * away * squares[:, :, None]) / 2
    return middle + _solved(np.matmul(np.swapaxes(away, 1, 2), share[:, :, None] * away), right)


def _beside(wanted: Matrix, known: Matrix, parts: Matrix) -> Iterator[Matrix]:
    nearest = np.where(parts > 0, wanted, np.inf).argmin(axis=1)
    away = wanted[np.arange(len(wanted)), nearest]
    for axis in range(min(BESIDE, known.shape[1])):
        for sign in (1.0, -1.0):
            tried = known[nearest]
            tried[:, axis] += sign * away
            yield tried


def _settled(places: Matrix, wanted: Matrix, known: Matrix, parts: Matrix) -> Matrix:
    left, losses = np.arange(len(places)), _losses(places, wanted, known, parts)
    least = EXACT * (parts * np.square(wanted)).sum(axis=1)
    for _ in range(STEPS):
        tried = _steps(places[left], wanted[left], known, parts[left])
        lower = np.stack([_losses(one, wanted[left], known, parts[left]) for one in tried])
        choice, before = lower.argmin(axis=0), losses[left]
        found = lower[choice, np.arange(left.size)]
        moved = found < before
        places[left[moved]] = np.stack(tried)[choice[moved], np.flatnonzero(moved)]
        losses[left[moved]] = found[moved]
        left = left[before - found > EPS * np.maximum(before, least[left])]
        if not left.size:
            break
    return places


def _steps(places: Matrix, wanted: Matrix, known: Matrix, parts: Matrix) -> tuple[Matrix, Matrix]:
    """A Newton step, and one of majorisation."""
    away = places[:, None] - known
    far = np.sqrt(np.square(away).sum(axis=2))
    ratio = np.divide(wanted, far, out=np.zeros_like(far), where=far > 0)
    slope = _sums((parts * (1 - ratio))[:, :, None] * away)
    bend = parts * np.divide(ratio, np.square(far), out=np.zeros_like(far), where=far > 0)
    curvature = np.matmul(np.swapaxes(away, 1, 2), bend[:, :, None] * away)
    curvature += (parts * (1 - ratio)).sum(axis=1)[:, None, None] * np.eye(known.shape[1])
    total = np.maximum(parts.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    return places - _solved(curvature, slope), places - slope / total


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


def _losses(places: Matrix, wanted: Matrix, known: Matrix, parts: Matrix | Vector) -> Vector:
    """(b,) sums of squares of items (b, p)."""
    far = np.sqrt(np.square(places[:, None] - known).sum(axis=2))
    return np.asarray((parts * np.square(wanted - far)).sum(axis=1))


def _sums(terms: Matrix) -> Matrix:
    """(b, p) sums over the known items of (b, n, p), each item by itself."""
    return np.asarray(np.ascontiguousarray(np.swapaxes(terms, 1, 2)).sum(axis=2))
