"""Log densities of rows under each component of a Gaussian mixture, and the moments of an EM step, in one pass.

Rows are taken `TILE` at a time and stand in columns, so that every inner loop runs over rows and is vectorised. What
the last tile lacks is filled with rows of weight 0. No responsibilities of all rows are held.
"""

import math

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.jit import inner, kernel, not_inlined

TILE = 128
"""Rows of a tile, a multiple of 8."""


@kernel("void(f8[:,::1], f8[:,::1], f8[:,:,::1], f8[::1], f8[:,::1])", writes=["scores"])
def log_joint(x: Matrix, means: Matrix, whitening: NDArray[np.float64], constants: Vector, scores: Matrix) -> None:
    """`scores` (n, k): constants[c] − ‖whitening[c] (x − means[c])‖²/2.

    whitening: (k, d, d) lower triangular, or (k, 1, d) the diagonal alone.
    """
    n, d, k = x.shape[0], x.shape[1], means.shape[0]
    tile, moved, scores_of_tile = np.zeros((d, TILE)), np.empty((d + 1, TILE)), np.empty((k, TILE))
    for start in range(0, n, TILE):
        size = _fill(x, start, tile)
        for c in range(k):
            _score(tile, means[c], whitening[c], constants[c], moved, scores_of_tile[c])
        for c in range(k):
            for t in range(size):
                scores[start + t, c] = scores_of_tile[c, t]


@kernel(
    "f8(f8[:,::1], f8[::1], f8[:,::1], f8[:,:,::1], f8[::1], f8[::1], f8[:,::1], f8[:,:,::1])",
    writes=["masses", "sums", "scatters"],
)
def moments(
    x: Matrix,
    weights: Vector,
    means: Matrix,
    whitening: NDArray[np.float64],
    constants: Vector,
    masses: Vector,
    sums: Matrix,
    scatters: NDArray[np.float64],
) -> float:
    """Weighted sum of the log densities of all rows; adds to the arrays what each component is responsible for.

    masses: (k,) weights. sums: (k, d) of rows less the mean. scatters: (k, d, d) lower triangles of their products, or
    (k, 1, d) of their squares, as `whitening` is.
    """
    d, k = x.shape[1], means.shape[0]
    tile, moved, scores_of_tile = np.zeros((d, TILE)), np.empty((d + 1, TILE)), np.empty((k, TILE))
    mass, most, whole, total = np.zeros(TILE), np.empty(TILE), np.empty(TILE), 0.0
    for start in range(0, x.shape[0], TILE):
        size = _fill(x, start, tile)
        for t in range(TILE):
            mass[t] = weights[start + t] if t < size else 0.0
        for c in range(k):
            _score(tile, means[c], whitening[c], constants[c], moved, scores_of_tile[c])
        total += _share(scores_of_tile, mass, most, whole)
        for c in range(k):
            share = _sum(scores_of_tile[c])
            if share > 0:
                masses[c] += share
                _gather(tile, means[c], scores_of_tile[c], moved, sums[c], scatters[c])
    return total


@not_inlined
def _fill(x: Matrix, start: int, tile: Matrix) -> int:
    """Rows from `start` on as columns of the tile; returns their number."""
    size: int = min(TILE, x.shape[0] - start)
    for t in range(size):
        for j in range(x.shape[1]):
            tile[j, t] = x[start + t, j]
    return size


@not_inlined
def _score(tile: Matrix, mean: Vector, whitening: Matrix, constant: float, moved: Matrix, score: Vector) -> None:
    """Log densities (TILE,) of the rows. moved: (d + 1, TILE) to work in."""
    d = mean.size
    for t in range(TILE):
        score[t] = 0.0
    for j in range(d):
        for t in range(TILE):
            moved[j, t] = tile[j, t] - mean[j]
    for j in range(d):
        _add_square(moved, whitening[min(j, whitening.shape[0] - 1)], 0 if whitening.shape[0] == d else j, j, score)
    for t in range(TILE):
        score[t] = constant - 0.5 * score[t]


@inner
def _add_square(moved: Matrix, row: Vector, first: int, last: int, score: Vector) -> None:
    """Adds the squares of the products of the rows with the coefficients from `first` to `last`."""
    product = moved[-1]
    for t in range(TILE):
        product[t] = 0.0
    i = first
    while i + 3 <= last:
        first_factor, two, three, four = row[i], row[i + 1], row[i + 2], row[i + 3]
        for t in range(TILE):
            product[t] += (first_factor * moved[i, t] + two * moved[i + 1, t]) + (
                three * moved[i + 2, t] + four * moved[i + 3, t]
            )
        i += 4
    while i <= last:
        for t in range(TILE):
            product[t] += row[i] * moved[i, t]
        i += 1
    for t in range(TILE):
        score[t] += product[t] * product[t]


@not_inlined
def _share(scores: Matrix, mass: Vector, most: Vector, whole: Vector) -> float:
    """From log densities (k, TILE) to responsibilities times the weights; returns the weighted sum of logarithms."""
    total = 0.0
    for t in range(TILE):
        most[t] = -np.inf
        whole[t] = 0.0
    for c in range(scores.shape[0]):
        for t in range(TILE):
            most[t] = max(most[t], scores[c, t])
    for c in range(scores.shape[0]):
        for t in range(TILE):
            scores[c, t] = math.exp(scores[c, t] - most[t])
            whole[t] += scores[c, t]
    for t in range(TILE):
        if mass[t] > 0:
            total += mass[t] * (most[t] + math.log(whole[t]))
        whole[t] = mass[t] / whole[t]
    for c in range(scores.shape[0]):
        for t in range(TILE):
            scores[c, t] *= whole[t]
    return total


@not_inlined
def _gather(tile: Matrix, mean: Vector, shares: Vector, moved: Matrix, sums: Vector, scatter: Matrix) -> None:
    """Adds the moments of the rows, each by its share, about the mean."""
    d, full = mean.size, scatter.shape[0] == mean.size
    weighted = moved[d]
    for j in range(d):
        for t in range(TILE):
            moved[j, t] = tile[j, t] - mean[j]
    for j in range(d):
        for t in range(TILE):
            weighted[t] = shares[t] * moved[j, t]
        sums[j] += _sum(weighted)
        for i in range(0 if full else j, j + 1):
            scatter[j if full else 0, i] += _product(weighted, moved[i])


@inner
def _sum(values: Vector) -> float:
    """Sum of (TILE,) values in eight parts, which the processor adds at the same time."""
    a = b = c = d = e = f = g = h = 0.0
    for t in range(0, TILE, 8):
        a += values[t]
        b += values[t + 1]
        c += values[t + 2]
        d += values[t + 3]
        e += values[t + 4]
        f += values[t + 5]
        g += values[t + 6]
        h += values[t + 7]
    return ((a + b) + (c + d)) + ((e + f) + (g + h))


@inner
def _product(first: Vector, other: Vector) -> float:
    """Inner product of (TILE,) values in eight parts."""
    a = b = c = d = e = f = g = h = 0.0
    for t in range(0, TILE, 8):
        a += first[t] * other[t]
        b += first[t + 1] * other[t + 1]
        c += first[t + 2] * other[t + 2]
        d += first[t + 3] * other[t + 3]
        e += first[t + 4] * other[t + 4]
        f += first[t + 5] * other[t + 5]
        g += first[t + 6] * other[t + 6]
        h += first[t + 7] * other[t + 7]
    return ((a + b) + (c + d)) + ((e + f) + (g + h))
