r"""Halving: the majority of all hypotheses that agree with every label so far.

Each mistake is one of at least half of the remaining hypotheses, so that a class of m hypotheses, one of which gives
all labels, costs at most log₂ m mistakes. A label that none of the remaining hypotheses gives removes none; from then
on no bound holds.

In short: All hypotheses vote, and those that were wrong once lose their vote. Each mistake halves the voters.

References: Littlestone (1988), Mach. Learn. 2:285; Shalev-Shwartz & Ben-David (2014), Understanding Machine Learning,
theorem 21.3.
"""

import math

from app.ml import finite_class_learner as shared
from app.ml.finite_class_learner import FiniteClassParams, State
from app.ml.online_learner import OnlineLearner, Played, Rounds


class OnlineHalving(FiniteClassParams):
    """Parameters of the halving learner."""


def play(params: OnlineHalving, state: State, rounds: Rounds) -> Played:
    after_rounds, after, predictions = shared.play(params, state, rounds, shared.MAJORITY)
    bound = shared.realisable(after, math.floor(math.log2(state.errors.size)))
    return shared.played(after_rounds, after, predictions, bound, state)


LEARNER = OnlineLearner(
    params=OnlineHalving,
    state=State,
    start=shared.start,
    play=play,
    faults=shared.faults,
    kept=lambda state: state.kept,
    hypothesis=shared.voted,
    bound="Mistakes are at most log₂ of the number of hypotheses, if one of them gives all labels.",
    hypotheses=lambda params, state: float(state.errors.size),
    levels=lambda params: params.hypotheses.levels(),
    summary=shared.summary,
)
