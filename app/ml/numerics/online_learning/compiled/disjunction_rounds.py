"""Rounds of the elimination learner of monotone disjunctions.

Reference: Littlestone (1988), Mach. Learn. 2:285.
"""

import math

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.jit import kernel
from app.ml.numerics.online_learning.compiled.kept_hypotheses import choose, outlive


@kernel(
    "i8(f8[:,::1], f8[::1], f8[::1], f8[::1], i8, f8[::1], f8[::1], f8[::1], i8[::1], f8[::1], f8[:,::1])",
    writes=["scores", "active", "chosen", "survivor", "runs", "sums", "after"],
)
def disjunction_rounds(
    x: Matrix,
    labels: Vector,
    scores: Vector,
    draws: Vector,
    turn: int,
    active: Vector,
    chosen: Vector,
    survivor: Vector,
    runs: Labels,
    sums: Vector,
    after: Matrix,
) -> int:
    """The number of rounds learned so far, with `turn` of them before.

    x: (n, d) of 0 and 1. labels: (n,) 0 and 1; NaN: none yet. scores: (n,) NaN where the round is to be predicted now.
    active: (d,) 1 for the variables of the disjunction. sums: [2] mistakes, rounds with the label 1 predicted 0, which
    no disjunction of the remaining variables explains. after: (n, 2) these after each round.
    """
    for i in range(labels.size):
        if math.isnan(scores[i]):
            scores[i] = 0.0
            for j in range(active.size):
                scores[i] = max(scores[i], active[j] * x[i, j])
        if not math.isnan(labels[i]):
            turn += 1
            choose(active, chosen, turn, draws[i])
            sums[0] += (scores[i] > 0) != (labels[i] > 0)
            if scores[i] > 0 and labels[i] == 0:
                outlive(active, survivor, runs, turn)
                for j in range(active.size):
                    active[j] *= x[i, j] == 0
            elif scores[i] == 0 and labels[i] > 0:
                sums[1] += 1
        after[i, 0], after[i, 1] = sums[0], sums[1]
    return turn
