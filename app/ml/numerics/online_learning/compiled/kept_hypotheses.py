"""Hypotheses that a learner keeps beside its present one, so that a model can be made of the whole sequence.

A hypothesis is a vector (k,). With h₁ … h_T those that predicted in T rounds:

    drift      Σ t·(hₜ₊₁ − hₜ), so that  h − drift/T  is their mean (Freund & Schapire 1999, Mach. Learn. 37:277)
    chosen     one of them, each with the same probability: that of round t takes its place with probability 1/t
    survivor   the one that predicted in most rounds in a row before it was changed
    runs       [2]: the first round of the present hypothesis, and the number of rounds of the survivor
"""

from app.ml.contract.algorithm import Labels, Vector
from app.ml.numerics.jit import inner


@inner
def choose(hypothesis: Vector, chosen: Vector, turn: int, draw: float) -> None:
    """Before the hypothesis of round `turn`, from 1, is changed. draw: uniform in [0, 1)."""
    if draw * turn < 1.0:
        for j in range(hypothesis.size):
            chosen[j] = hypothesis[j]


@inner
def outlive(hypothesis: Vector, survivor: Vector, runs: Labels, turn: int) -> None:
    """Before a hypothesis that has predicted in round `turn` is changed for the next one."""
    survived = turn - runs[0] + 1
    if survived > runs[1]:
        runs[1] = survived
        for j in range(hypothesis.size):
            survivor[j] = hypothesis[j]
    runs[0] = turn + 1
