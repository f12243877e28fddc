r"""Consistent: the first hypothesis that agrees with every label so far.

Each mistake removes at least the hypothesis that made it, so that a class of m hypotheses, one of which gives all
labels, costs at most m − 1 mistakes, and may cost as many. A label that none of the remaining hypotheses gives removes
none; from then on no bound holds.

In short: One hypothesis predicts until it is wrong, then the next one that was never wrong. It is the simplest learner
of a finite class, and the worst by its bound.

Reference: Shalev-Shwartz & Ben-David (2014), Understanding Machine Learning, section 21.1 and exercise 21.1.
"""

from app.ml import finite_class_learner as shared
from app.ml.finite_class_learner import FiniteClassParams, State
from app.ml.online_learner import OnlineLearner, Played, Rounds


class OnlineConsistent(FiniteClassParams):
    """Parameters of the consistent learner."""


def play(params: OnlineConsistent, state: State, rounds: Rounds) -> Played:
    after_rounds, after, predictions = shared.play(params, state, rounds, shared.FIRST)
    bound = shared.realisable(after, state.errors.size - 1)
    return shared.played(after_rounds, after, predictions, bound, state)


LEARNER = OnlineLearner(
    params=OnlineConsistent,
    state=State,
    start=shared.start,
    play=play,
    faults=shared.faults,
    kept=lambda state: state.kept,
    hypothesis=shared.first,
    bound="Mistakes are at most the number of hypotheses less one, if one of them gives all labels.",
    hypotheses=lambda params, state: float(state.errors.size),
    levels=lambda params: params.hypotheses.levels(),
    summary=shared.summary,
)
