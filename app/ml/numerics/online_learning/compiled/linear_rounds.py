"""Rounds of linear online learners: the perceptron, and projected descent along subgradients.

Each round predicts by the weights as they are, then learns its label, if it has one. Arrays that a kernel writes are
the state of the learner; `kept_hypotheses` explains drift, chosen, survivor and runs.

References: Shalev-Shwartz & Ben-David (2014), Understanding Machine Learning, section 21.4 and theorems 21.15, 21.16;
Zinkevich (2003), Proc. 20th ICML, 928.
"""

import math

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.jit import inner, kernel
from app.ml.numerics.online_learning.compiled.kept_hypotheses import choose, outlive

HINGE, LOGISTIC, SQUARED = 0, 1, 2


@inner
def _dot(row: Vector, weights: Vector) -> float:
    total = 0.0
    for j in range(row.size):
        total += row[j] * weights[j]
    return total


@kernel(
    "i8(f8[:,::1], f8[::1], f8[::1], f8[::1], i8, f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], i8[::1], f8[::1], "
    "f8[:,::1])",
    writes=["scores", "weights", "drift", "chosen", "survivor", "runs", "sums", "after"],
)
def perceptron_rounds(
    x: Matrix,
    labels: Vector,
    scores: Vector,
    draws: Vector,
    turn: int,
    comparator: Vector,
    weights: Vector,
    drift: Vector,
    chosen: Vector,
    survivor: Vector,
    runs: Labels,
    sums: Vector,
    after: Matrix,
) -> int:
    """The number of rounds learned so far, with `turn` of them before.

    x: (n, d). labels: (n,) 0 and 1; NaN: none yet. scores: (n,) NaN where the round is to be predicted now. draws:
    (n,). comparator: (d,) w*; empty: there is none. sums: [3] squared length of the longest row, mistakes, hinge loss
    of w* in rounds of mistakes. after: (n, 3) these after each round.
    """
    for i in range(labels.size):
        if math.isnan(scores[i]):
            scores[i] = _dot(x[i], weights)
        if not math.isnan(labels[i]):
            turn += 1
            choose(weights, chosen, turn, draws[i])
            sums[0] = max(sums[0], _dot(x[i], x[i]))
            if (scores[i] > 0) != (labels[i] > 0):
                sign = 1.0 if labels[i] > 0 else -1.0
                sums[1] += 1
                if comparator.size > 0:
                    sums[2] += max(0.0, 1.0 - sign * _dot(x[i], comparator))
                outlive(weights, survivor, runs, turn)
                for j in range(weights.size):
                    weights[j] += sign * x[i, j]
                    drift[j] += turn * (sign * x[i, j])
        for k in range(3):
            after[i, k] = sums[k]
    return turn


@inner
def _loss(kind: int, score: float, label: float) -> float:
    if kind == SQUARED:
        return (score - label) ** 2
    margin = score if label > 0 else -score
    if kind == HINGE:
        return max(0.0, 1.0 - margin)
    return math.log1p(math.exp(-margin)) if margin > 0 else math.log1p(math.exp(margin)) - margin


@inner
def _slope(kind: int, score: float, label: float) -> float:
    if kind == SQUARED:
        return 2.0 * (score - label)
    sign = 1.0 if label > 0 else -1.0
    margin = sign * score
    if kind == HINGE:
        return -sign if margin < 1.0 else 0.0
    share = math.exp(-abs(margin))
    return -sign * (share / (1.0 + share) if margin > 0 else 1.0 / (1.0 + share))


@inner
def _project(weights: Vector, radius: float, box: bool) -> None:
    """Onto the ball, or the box, of this radius around 0."""
    if box:
        for j in range(weights.size):
            weights[j] = min(max(weights[j], -radius), radius)
        return
    length = math.sqrt(_dot(weights, weights))
    if length > radius:
        for j in range(weights.size):
            weights[j] *= radius / length


@inner
def _support(slopes: Vector, radius: float, box: bool) -> float:
    """The most that a vector of the ball, or the box, gains against these slopes."""
    total = 0.0
    for j in range(slopes.size):
        total += abs(slopes[j]) if box else slopes[j] * slopes[j]
    return radius * (total if box else math.sqrt(total))


@kernel(
    "i8(f8[:,::1], f8[::1], f8[::1], f8[::1], i8, i8, f8, f8, b1, f8, f8[::1], f8[::1], f8[::1], f8[::1], i8[::1], "
    "f8[::1], f8[::1], f8[:,::1])",
    writes=["scores", "weights", "drift", "chosen", "survivor", "runs", "slopes", "sums", "after"],
)
def descent_rounds(
    x: Matrix,
    labels: Vector,
    scores: Vector,
    draws: Vector,
    turn: int,
    kind: int,
    rate: float,
    radius: float,
    box: bool,
    reach: float,
    weights: Vector,
    drift: Vector,
    chosen: Vector,
    survivor: Vector,
    runs: Labels,
    slopes: Vector,
    sums: Vector,
    after: Matrix,
) -> int:
    """The number of rounds learned so far, with `turn` of them before. Arrays not named here: as above.

    kind: HINGE, LOGISTIC or SQUARED. rate: of every step; below 0 it is that of the doubling trick, −rate/√length in
    a period of so many rounds, each of which starts from 0. reach: squared length of the longest vector of the set.
    slopes: (d,) sum of all subgradients v. sums: [5] Σ ⟨v, w⟩, Σ ‖v‖² in the period, bounds of the periods before,
    rounds of the period, its length. after: (n, 3) loss of the round (NaN: it has no label), regret, bound.
    """
    for i in range(labels.size):
        if math.isnan(scores[i]):
            scores[i] = _dot(x[i], weights)
        after[i, 0] = math.nan
        step = rate if rate >= 0 else -rate / math.sqrt(sums[4])
        if not math.isnan(labels[i]):
            turn += 1
            choose(weights, chosen, turn, draws[i])
            slope = _slope(kind, scores[i], labels[i])
            after[i, 0] = _loss(kind, scores[i], labels[i])
            restarts = rate < 0 and sums[3] + 1 == sums[4]
            if slope != 0 or restarts:
                outlive(weights, survivor, runs, turn)
                for j in range(weights.size):
                    drift[j] -= turn * weights[j]
                    weights[j] -= step * slope * x[i, j]
                    slopes[j] += slope * x[i, j]
                _project(weights, radius, box)
            sums[0] += slope * scores[i]
            sums[1] += slope * slope * _dot(x[i], x[i])
            sums[3] += 1
            if restarts:
                sums[2] += reach / (2 * step) + step / 2 * sums[1]
                sums[1], sums[3], sums[4] = 0.0, 0.0, 2 * sums[4]
                for j in range(weights.size):
                    weights[j] = 0.0
            if slope != 0 or restarts:
                for j in range(weights.size):
                    drift[j] += turn * weights[j]
        step = rate if rate >= 0 else -rate / math.sqrt(sums[4])
        after[i, 1] = sums[0] + _support(slopes, radius, box)
        after[i, 2] = sums[2] + (reach / (2 * step) + step / 2 * sums[1] if sums[3] > 0 else 0.0)
    return turn
