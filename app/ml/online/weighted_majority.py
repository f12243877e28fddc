r"""Weighted majority: hypotheses vote by weights that shrink with their mistakes.

Randomised, a hypothesis drawn by its weight predicts, and a mistake multiplies a weight by e^(−η). Whatever the labels,
the expected mistakes exceed those of the best of m hypotheses by at most  ln(m)/η + ½ηt  in t rounds: √(2T ln m)  for
η = √(2 ln m / T). Without a number of rounds T the doubling trick starts anew in periods of 1, 2, 4, … rounds, at the
price of a factor 3.415. Without chance the weighted majority predicts, and a mistake halves a weight: mistakes are at
most 2.41(M + log₂ m), M those of the best hypothesis.

In short: Advice of many sources is weighed by how often each was right. It needs no source that is always right, and
follows the best one closely.

References: Littlestone & Warmuth (1994), Inf. Comput. 108:212; Shalev-Shwartz & Ben-David (2014), Understanding Machine
Learning, theorem 21.11 and exercise 21.4.
"""

import math

import numpy as np
from pydantic import Field

from app.ml import finite_class_learner as shared
from app.ml.contract.algorithm import Vector
from app.ml.finite_class_learner import FiniteClassParams, State
from app.ml.numerics.online_learning.doubling import DOUBLING
from app.ml.online_learner import Hypothesis, OnlineLearner, Played, Rounds, learned

HALF = 1 / (2 - math.log2(3))
"""2.41…: mistakes of the weighted majority for each of the best hypothesis, and for each halving of the class."""


class OnlineWeightedMajority(FiniteClassParams):
    """Parameters of the weighted majority."""

    randomised: bool = Field(
        True,
        description="Predicts by a hypothesis drawn by its weight, which bounds the regret for any labels; if false, "
        "by the weighted majority.",
    )
    horizon: int | None = Field(
        None,
        ge=1,
        le=2**53,
        description="Number of rounds T that the randomised learner is tuned for; null: the doubling trick. Unused "
        "without chance.",
    )


def _rate(params: OnlineWeightedMajority, size: int) -> float:
    """Exponent of a mistake; below 0 that of the doubling trick."""
    tuned = math.sqrt(2 * math.log(size))
    return -tuned if params.horizon is None else tuned / math.sqrt(params.horizon)


def play(params: OnlineWeightedMajority, state: State, rounds: Rounds) -> Played:
    size = state.errors.size
    how, rate = (shared.DRAWN, _rate(params, size)) if params.randomised else (shared.HALVED, 0.0)
    after_rounds, after, predictions = shared.play(params, state, rounds, how, rate=rate)
    turns = rounds.turn + np.cumsum(learned(rounds.labels), dtype=np.float64)
    bound = _bound(params, size, rate, turns) if params.randomised else HALF * (after[:, 1] + math.log2(size))
    return shared.played(after_rounds, after, predictions, bound, state)


def _bound(params: OnlineWeightedMajority, size: int, rate: float, turns: Vector) -> Vector:
    """(n,) on the regret in so many rounds."""
    if params.horizon is None:
        return np.asarray(DOUBLING * math.sqrt(2 * math.log(size)) * np.sqrt(turns))
    return np.asarray((math.log(size) / rate if rate else 0.0) + rate / 2 * turns)


def average(params: OnlineWeightedMajority, state: State, turn: int) -> Vector:
    return state.total / turn if params.randomised else state.kept.last


def hypothesis(params: OnlineWeightedMajority, weights: Vector) -> Hypothesis:
    return shared.voted(params, weights, shares=params.randomised)


LEARNER = OnlineLearner(
    params=OnlineWeightedMajority,
    state=State,
    start=shared.start,
    play=play,
    faults=shared.faults,
    kept=lambda state: state.kept,
    hypothesis=hypothesis,
    bounded=lambda params: "regret" if params.randomised else "mistakes",
    bound="Randomised, the regret against the best of m hypotheses is at most √(2T ln m) in T rounds, and 3.415 times "
    "that for unknown T; without chance, mistakes are at most 2.41(M + log₂ m), M those of the best hypothesis.",
    average=average,
    average_bounded=True,
    levels=lambda params: params.hypotheses.levels(),
    summary=shared.summary,
)
