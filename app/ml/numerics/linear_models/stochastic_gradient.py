"""One pass of stochastic gradient descent over rows in a given order, compiled.

References: Robbins & Monro (1951), Ann. Math. Statist. 22:400; Widrow & Hoff (1960), IRE WESCON Conv. Rec. 4:96;
Nagumo & Noda (1967), IEEE Trans. Autom. Control 12:282 (the limit by the length of the row).
"""

import math

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.jit import inner, kernel

AHEAD = 64
"""Rows that are gathered at a time."""
ROOT = 0.5


@inner
def row_loss(kind: int, scores: Vector, targets: Vector, slopes: Vector) -> float:
    """Loss of one row, as `linear_loss.losses` and `slopes` have it; `slopes` (s,) is written."""
    if kind == 4:
        return _softmax(scores, targets, slopes)
    return _each(kind, scores, targets, slopes)


@inner
def _softmax(scores: Vector, targets: Vector, slopes: Vector) -> float:
    largest, whole, own_score = scores[0], 0.0, 0.0
    for c in range(1, scores.size):
        largest = max(largest, scores[c])
    for c in range(scores.size):
        slopes[c] = math.exp(scores[c] - largest)
        whole += slopes[c]
    for c in range(scores.size):
        slopes[c] /= whole
        if targets[c] > 0:
            slopes[c] -= 1.0
            own_score += scores[c]
    loss: float = math.log(whole) + largest - own_score
    return loss


@inner
def _each(kind: int, scores: Vector, targets: Vector, slopes: Vector) -> float:
    total = 0.0
    for c in range(scores.size):
        z, t = scores[c], targets[c]
        if kind == 0:  # squared
            slopes[c] = z - t
            total += 0.5 * (z - t) ** 2
        elif kind == 1:  # absolute
            slopes[c] = (1.0 if z > t else 0.0) - (1.0 if z < t else 0.0)
            total += abs(z - t)
        elif kind == 2:  # hinge
            slopes[c] = -t if t * z < 1 else 0.0
            total += max(0.0, 1 - t * z)
        else:  # logistic
            small = math.exp(-abs(z))
            slopes[c] = -t * (small if t * z > 0 else 1.0) / (1 + small)
            total += math.log1p(small) + max(0.0, -t * z)
    return total


@inner
def _score(row: Vector, coef: Vector, constant: float) -> float:
    total: float = coef[row.size] * constant + _product(row, coef)  # numba knows the type, mypy does not
    return total


@inner
def _product(first: Vector, other: Vector) -> float:
    """The sum over all columns of the first, in eight sums, which the processor adds at the same time."""
    whole = first.size // 8 * 8
    a = b = c = d = e = f = g = h = 0.0
    for j in range(0, whole, 8):
        a += first[j] * other[j]
        b += first[j + 1] * other[j + 1]
        c += first[j + 2] * other[j + 2]
        d += first[j + 3] * other[j + 3]
        e += first[j + 4] * other[j + 4]
        f += first[j + 5] * other[j + 5]
        g += first[j + 6] * other[j + 6]
        h += first[j + 7] * other[j + 7]
    for j in range(whole, first.size):
        a += first[j] * other[j]
    total: float = ((a + e) + (b + f)) + ((c + g) + (d + h))
    return total


@inner
def _add(row: Vector, pull: float, constant: float, slope: Vector) -> None:
    for j in range(row.size):
        slope[j] += pull * row[j]
    slope[row.size] += pull * constant


@kernel("f8(i8, f8[:,::1], f8[:,::1], f8[::1], i8[::1], i8, f8, f8[:,::1], f8[::1], f8, f8, i8, f8)", writes=["coef"])
def sgd_pass(  # noqa: PLR0917 - a kernel takes its arguments by position
    kind: int,
    x: Matrix,
    targets: Matrix,
    weights: Vector,
    order: Labels,
    batch: int,
    constant: float,
    coef: Matrix,
    rates: Vector,
    alpha: float,
    power: float,
    steps: int,
    limit: float,
) -> float:
    """Step after step down the mean slope of `batch` rows and of ½α‖β‖². The summed weighted loss before each step.

    x: (n, d); targets: (n, s); weights: (n,). coef: (s, d + 1), written; the last column belongs to the `constant` that
    every row ends with, and α leaves it alone. rates: (2,) the rate r and a number h of steps; step t, counted from
    `steps`, has the rate r/(1 + t/h)^power, and no more than `limit` over the mean weighted squared length of its rows.
    """
    s, d = coef.shape[0], x.shape[1]
    scores, slopes, slope, ahead = np.empty(s), np.empty(s), np.zeros((s, d + 1)), min(AHEAD, order.size)
    rows, aims, shares = np.empty((ahead, d)), np.empty((ahead, s)), np.empty(ahead)
    total, length = 0.0, 0.0
    for turn in range(order.size):
        near, place = turn % ahead, turn % batch
        if near == 0:
            _gather(x, targets, weights, order[turn : turn + ahead], rows, aims, shares)
        row, weight = rows[near], shares[near]
        for c in range(s):
            scores[c] = _score(row, coef[c], constant)
        total += weight * row_loss(kind, scores, aims[near], slopes)
        if place == 0:
            slope[:], length = 0.0, 0.0
        for c in range(s):
            _add(row, weight * slopes[c], constant, slope[c])
        if limit < np.inf:
            length += weight * (constant * constant + _product(row, row))
        if place == batch - 1 or turn == order.size - 1:
            rate = rates[0] / _power(1.0 + steps / rates[1], power)
            if rate * length > limit * (place + 1):
                rate = limit * (place + 1) / length
            steps += 1
            _step(coef, slope, rate, 1.0 / (place + 1), alpha)
    return total


@inner
def _gather(  # noqa: PLR0917 - as a kernel
    x: Matrix, targets: Matrix, weights: Vector, order: Labels, rows: Matrix, aims: Matrix, shares: Vector
) -> None:
    """The next rows, one after the other: waiting for one's memory overlaps with waiting for the others'."""
    for t in range(order.size):
        i = order[t]
        shares[t] = weights[i]
        for j in range(x.shape[1]):
            rows[t, j] = x[i, j]
        for c in range(targets.shape[1]):
            aims[t, c] = targets[i, c]


@inner
def _power(base: float, power: float) -> float:
    return math.sqrt(base) if power == ROOT else base**power


@inner
def _step(coef: Matrix, slope: Matrix, rate: float, share: float, alpha: float) -> None:
    d = coef.shape[1] - 1
    for c in range(coef.shape[0]):
        for j in range(d):
            coef[c, j] -= rate * (slope[c, j] * share + alpha * coef[c, j])
        coef[c, d] -= rate * slope[c, d] * share
