"""Rounds of learners over a finite class: a weight for each hypothesis, and votes.

References: Shalev-Shwartz & Ben-David (2014), Understanding Machine Learning, sections 21.1 and 21.2;
Littlestone & Warmuth (1994), Inf. Comput. 108:212.
"""

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.jit import inner, kernel
from app.ml.numerics.online_learning.compiled.kept_hypotheses import choose, outlive

MAJORITY, FIRST, GIVEN, HALVED, DRAWN = 0, 1, 2, 3, 4
"""Prediction by the majority of the consistent hypotheses, by the first of them, as a table states, by the weighted
majority, whose wrong members lose half their weight, or by a hypothesis drawn by its weight."""
Predictions: TypeAlias = NDArray[np.uint8]
"""(m,) or (c, m) of 0 and 1."""
MIN_LARGEST_WEIGHT = 1e-100
"""Largest weight below which all weights are scaled."""


@inner
def _vote(row: Predictions, weights: Vector, rule: int, predicted: float) -> float:
    """Share of the weight for 1; of the first hypothesis with weight its prediction."""
    if rule == GIVEN:
        return predicted
    total, ones = 0.0, 0.0
    for j in range(weights.size):
        if rule == FIRST and weights[j] > 0:
            return float(row[j])
        total += weights[j]
        ones += weights[j] * row[j]
    return ones / total


@inner
def _refute(row: Predictions, weights: Vector, label: bool) -> bool:
    """Leave only the hypotheses that give this label; none is left out where no one gives it. True if one was."""
    agree, differ = False, False
    for j in range(weights.size):
        if weights[j] > 0:
            agree |= (row[j] > 0) == label
            differ |= (row[j] > 0) != label
    if agree and differ:
        for j in range(weights.size):
            if (row[j] > 0) != label:
                weights[j] = 0.0
    return agree


@inner
def _penalise(row: Predictions, weights: Vector, label: bool, factor: float) -> None:
    largest = 0.0
    for j in range(weights.size):
        if (row[j] > 0) != label:
            weights[j] *= factor
        largest = max(largest, weights[j])
    if largest < MIN_LARGEST_WEIGHT:
        for j in range(weights.size):
            weights[j] /= largest


@kernel(
    "i8(u1[:,::1], i8[::1], f8[::1], f8[::1], f8[:,::1], i8, i8, i8, f8, f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], "
    "i8[::1], f8[::1], f8[::1], f8[:,::1])",
    writes=["scores", "weights", "total", "chosen", "survivor", "runs", "errors", "sums", "after"],
)
def class_rounds(
    table: Predictions,
    cells: Labels,
    labels: Vector,
    scores: Vector,
    draws: Matrix,
    first: int,
    turn: int,
    rule: int,
    rate: float,
    predicted_values: Vector,
    weights: Vector,
    total: Vector,
    chosen: Vector,
    survivor: Vector,
    runs: Labels,
    errors: Vector,
    sums: Vector,
    after: Matrix,
) -> int:
    """Play from round `first` on, with `turn` rounds learned before; the place after the last round that was played.

    It is n, but for the rule GIVEN, whose table of predictions holds only until the weights change.

    table: (c, m) predictions of m hypotheses in c cells. cells: (n,) those of the rounds. labels: (n,) 0 and 1; NaN:
    none yet. scores: (n,) NaN where the round is to be predicted now. draws: (n, 2) uniform in [0, 1): for the
    prediction, and for `chosen`. rate: exponent of a mistake for the rule DRAWN; below 0 that of the doubling trick,
    −rate/√length in a period of so many rounds, each of which starts with equal weights. given: (c,). total: (m,) sum
    of the weights of all rounds, each with the sum 1. errors: (m,) mistakes of each hypothesis. sums: [5] mistakes,
    loss, labels that no hypothesis gives, rounds of the period, its length. after: (n, 3) loss of the round (NaN: it
    has no label), mistakes of the best hypothesis, such labels so far.
    """
    n, changed = labels.size, False
    for i in range(first, n):
        if changed:
            return i
        row = table[cells[i]]
        if math.isnan(scores[i]):
            scores[i] = _vote(row, weights, rule, predicted_values[cells[i]] if rule == GIVEN else 0.0)
        after[i, 0] = math.nan
        if not math.isnan(labels[i]):
            turn += 1
            choose(weights, chosen, turn, draws[i, 1])
            label = labels[i] > 0
            prediction = draws[i, 0] < scores[i] if rule == DRAWN else scores[i] > 0.5
            sums[0] += prediction != label
            after[i, 0] = (1.0 - scores[i] if label else scores[i]) if rule == DRAWN else 1.0 * (prediction != label)
            sums[1] += after[i, 0]
            if rule == DRAWN:
                weight = 0.0
                for j in range(weights.size):
                    weight += weights[j]
                for j in range(weights.size):
                    total[j] += weights[j] / weight
            wrong = False
            for j in range(weights.size):
                if (row[j] > 0) != label:
                    errors[j] += 1
                    wrong |= weights[j] > 0
            restarts = rule == DRAWN and rate < 0 and sums[3] + 1 == sums[4]
            if wrong or restarts:
                outlive(weights, survivor, runs, turn)
                changed = rule == GIVEN
            if rule == DRAWN:
                _penalise(row, weights, label, math.exp(-(rate if rate >= 0 else -rate / math.sqrt(sums[4]))))
                sums[3] += 1
                if restarts:
                    sums[3], sums[4] = 0.0, 2 * sums[4]
                    for j in range(weights.size):
                        weights[j] = 1.0
            elif rule == HALVED:
                _penalise(row, weights, label, 0.5)
            else:
                sums[2] += not _refute(row, weights, label)
        after[i, 1] = errors[0]
        for j in range(1, weights.size):
            after[i, 1] = min(after[i, 1], errors[j])
        after[i, 2] = sums[2]
    return n
