"""Sums over the rows of a table that read each row once; BLAS reads it with every product.

Rows are taken `TILE` at a time, so that they are still in the first cache on the way back from their score.
"""

import math

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.jit import inner, kernel, reordered
from app.ml.numerics.kernel_functions.compiled.exponential import exponential

TILE = 32
"""Rows of a tile, the columns of which are mostly some dozens."""


@kernel(
    "f8(f8[:,::1], f8[::1], f8[::1], f8[::1], f8, f8[::1], f8[::1])",
    writes=["slopes", "small"],
    fused=True,
)
def log_odds_sums(
    x: Matrix, targets: Vector, weights: Vector, coef: Vector, constant: float, slopes: Vector, small: Vector
) -> float:
    """The weighted sum of max(z, 0) − z·target, for two classes with log odds z = x·coef + constant.

    Writes e^−|z| to `small` (n,): log(1 + small) is what lacks to the loss. slopes: (d + 1,), to which the weighted
    sums of the probability less the target are added, times each column and last by itself.
    """
    n, d = x.shape
    score, pull = np.zeros(TILE), np.empty(TILE)
    raw = np.empty(TILE)
    bits = raw.view(np.int64)
    total = alone = 0.0
    for start in range(0, n, TILE):
        size = min(TILE, n - start)
        _score(x, start, size, coef, constant, score, pull, raw, bits)
        for t in range(size):
            small[start + t] = pull[t]
        for t in range(TILE):
            pull[t] = (pull[t] if score[t] < 0 else 1.0) / (1.0 + pull[t])
        for t in range(size):
            weight, target = weights[start + t], targets[start + t]
            total += weight * (max(score[t], 0.0) - score[t] * target)
            pull[t] = weight * (pull[t] - target)
            alone += pull[t]
        t = 0
        while t + 4 <= size:
            first, two, three, four = x[start + t], x[start + t + 1], x[start + t + 2], x[start + t + 3]
            a, b, c, e = pull[t], pull[t + 1], pull[t + 2], pull[t + 3]
            for j in range(d):
                slopes[j] += (a * first[j] + b * two[j]) + (c * three[j] + e * four[j])
            t += 4
        while t < size:
            for j in range(d):
                slopes[j] += pull[t] * x[start + t, j]
            t += 1
    slopes[d] += alone
    return total


@kernel(
    "void(f8[:,::1], f8[::1], f8[::1], f8, f8[::1], f4[:,::1])",
    writes=["spread", "scaled"],
    fused=True,
)
def spread_rows(
    x: Matrix, weights: Vector, coef: Vector, constant: float, spread: Vector, scaled: NDArray[np.float32]
) -> None:
    """Writes √(weight·p(1 − p)) to `spread` (n,), p being the probability of the second class, and x times it."""
    n = x.shape[0]
    score, small, raw = np.zeros(TILE), np.empty(TILE), np.empty(TILE)
    bits = raw.view(np.int64)
    for start in range(0, n, TILE):
        size = min(TILE, n - start)
        _score(x, start, size, coef, constant, score, small, raw, bits)
        for t in range(size):
            share = math.sqrt(weights[start + t] * small[t]) / (1.0 + small[t])
            spread[start + t] = share
            row, out = x[start + t], scaled[start + t]
            for j in range(x.shape[1]):
                out[j] = share * row[j]


@kernel("void(f8[:,::1], f8[::1], f8[::1], f8[::1])", writes=["sums", "squares"], fused=True)
def moments(x: Matrix, weights: Vector, sums: Vector, squares: Vector) -> None:
    """Adds the weighted sums of the columns and of their squares."""
    for i in range(x.shape[0]):
        weight = weights[i]
        for j in range(x.shape[1]):
            each = weight * x[i, j]
            sums[j] += each
            squares[j] += each * x[i, j]


@inner
def _score(
    x: Matrix,
    start: int,
    size: int,
    coef: Vector,
    constant: float,
    score: Vector,
    small: Vector,
    raw: Vector,
    bits: NDArray[np.int64],
) -> None:
    """Write the log odds z of a tile of rows to `score`, and e^−|z| to `small`; raw and bits as of `exponential`."""
    for t in range(size):
        score[t] = _product(x[start + t], coef) + constant
    for t in range(TILE):
        small[t] = -abs(score[t])
    exponential(small, raw, bits)


@reordered
def _product(first: Vector, other: Vector) -> float:
    total = 0.0
    for j in range(first.size):
        total += first[j] * other[j]
    return total
