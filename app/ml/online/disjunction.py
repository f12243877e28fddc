r"""Elimination: the disjunction of boolean inputs, from all of them down to those that no row contradicts.

Begins with all d inputs and predicts the second label where one of the remaining is true. A row of the first label
that was predicted wrongly removes all inputs that are true in it. Labels by any monotone disjunction cost at most d
mistakes, and no deterministic learner can do with fewer.

In short: Every input counts as a reason for the second label until a row of the first one has it. The remaining inputs
are the rule.

References: Littlestone (1988), Mach. Learn. 2:285; Kearns & Vazirani (1994), An Introduction to Computational Learning
Theory, section 1.3.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from app.base.faults import Fault
from app.ml.contract.algorithm import JSON, Params, Vector
from app.ml.numerics.online_learning.compiled.disjunction_rounds import disjunction_rounds
from app.ml.numerics.online_learning.finite_classes import boolean_faults, compared
from app.ml.online_learner import Hypothesis, Inputs, Kept, OnlineLearner, Played, Rounds, above, rule, ruled, wrong


class OnlineDisjunction(Params):
    """Parameters of the disjunction learner: it has none."""


class State(NamedTuple):
    kept: Kept
    sums: Vector
    """[2], as `disjunction_rounds` keeps them."""


def faults(params: OnlineDisjunction, kinds: Sequence[str]) -> Iterator[Fault]:
    yield from boolean_faults(kinds)


def start(params: OnlineDisjunction, width: int) -> State:
    return State(Kept.of(np.ones(width)), np.zeros(2))


def play(params: OnlineDisjunction, state: State, rounds: Rounds) -> Played:
    iterates, sums, after = state.kept.writable(), state.sums.copy(), np.empty((len(rounds.x), 2))
    disjunction_rounds(
        rounds.x, rounds.labels, rounds.scores, np.ascontiguousarray(rounds.draws[:, 1]), rounds.turn, iterates.last,
        iterates.chosen, iterates.survivor, iterates.runs, sums, after,
    )  # fmt: skip
    predictions = above(rounds.scores)
    bound = np.where(after[:, 1] == 0, float(rounds.x.shape[1]), np.nan)
    unknown = np.full(len(bound), np.nan)
    return Played(State(iterates, sums), predictions, wrong(predictions, rounds.labels), unknown, bound)


def hypothesis(params: OnlineDisjunction, active: Vector) -> Hypothesis:
    return ruled([rule((compared(">", 0.5, place),), 1.0) for place in np.flatnonzero(active).tolist()])


def summary(params: OnlineDisjunction, state: State, inputs: Inputs) -> JSON:
    active = np.flatnonzero(state.kept.last).tolist()
    return {"any_of": [inputs.names[place] for place in active], "unexplained": int(state.sums[1])}


LEARNER = OnlineLearner(
    params=OnlineDisjunction,
    state=State,
    start=start,
    play=play,
    faults=faults,
    kept=lambda state: state.kept,
    hypothesis=hypothesis,
    bound="Mistakes are at most the number of inputs, if a disjunction of them gives all labels.",
    hypotheses=lambda params, state: len(state.kept.last) + 1.0,
    summary=summary,
)
