"""One pass of stochastic gradient descent over rows in a given order, compiled.

References: Robbins & Monro (1951), Ann. Math. Statist. 22:400; Widrow & Hoff (1960), IRE WESCON Conv. Rec. 4:96;
Nagumo & Noda (1967), IEEE Trans. Autom. Control 12:282 (the limit by the length of the row).
"""

import math

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.jit import inner, kernel


@inner
def row_loss(kind: int, scores: Vector, targets: Vector, slopes: Vector) -> float:
    """Loss of one row, as `linear_loss.losses` and `slopes` have it; `slopes` (s,) is written."""
    if kind == 4:
        return _softmax(scores, targets, slopes)
    return _each(kind, scores, targets, slopes)


@inner
def _softmax(scores: Vector, targets: Vector, slopes: Vector) -> float:
    largest, whole, own = scores[0], 0.0, 0.0
    for c in range(1, scores.size):
        largest = max(largest, scores[c])
    for c in range(scores.size):
        slopes[c] = math.exp(scores[c] - largest)
        whole += slopes[c]
    for c in range(scores.size):
        slopes[c] /= whole
        if targets[c] > 0:
            slopes[c] -= 1.0
            own += scores[c]
    loss: float = math.log(whole) + largest - own
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
    total: float = coef[row.size] * constant  # numba knows the type, mypy does not
    for j in range(row.size):
        total += coef[j] * row[j]
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
    scores, slopes, slope = np.empty(s), np.empty(s), np.zeros((s, d + 1))
    total = 0.0
    for begin in range(0, order.size, batch):
        end = min(begin + batch, order.size)
        slope[:] = 0.0
        length = 0.0
        for turn in range(begin, end):
            i = order[turn]
            for c in range(s):
                scores[c] = _score(x[i], coef[c], constant)
            total += weights[i] * row_loss(kind, scores, targets[i], slopes)
            for c in range(s):
                _add(x[i], weights[i] * slopes[c], constant, slope[c])
            length += weights[i] * (constant * constant + np.dot(x[i], x[i]))
        rate = rates[0] / (1.0 + steps / rates[1]) ** power
        if rate * length > limit * (end - begin):
            rate = limit * (end - begin) / length
        steps += 1
        for c in range(s):
            for j in range(d):
                coef[c, j] -= rate * (slope[c, j] / (end - begin) + alpha * coef[c, j])
            coef[c, d] -= rate * slope[c, d] / (end - begin)
    return total
