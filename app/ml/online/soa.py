r"""Standard optimal algorithm: the label that leaves the hypotheses with the larger Littlestone dimension.

Each mistake lowers the dimension of the remaining hypotheses, so that a class with a hypothesis that gives all labels
costs no more mistakes than its Littlestone dimension, and no deterministic learner can do with fewer. Finding a
dimension takes time that grows fast with the class: it may have 256 hypotheses, and a search that looks at too many
sets of them is refused.

In short: It prepares for the worst sequence of labels that the remaining hypotheses allow. No deterministic learner has
a better bound.

References: Littlestone (1988), Mach. Learn. 2:285; Shalev-Shwartz & Ben-David (2014), Understanding Machine Learning,
theorem 21.7.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from app.base.errors import InvalidData
from app.base.faults import Fault
from app.ml import finite_class_learner as shared
from app.ml.contract.algorithm import JSON, Vector
from app.ml.finite_class_learner import FiniteClassParams
from app.ml.numerics.online_learning.finite_classes import ExpertClass
from app.ml.numerics.online_learning.littlestone import Littlestone
from app.ml.online_learner import Hypothesis, Inputs, OnlineLearner, Played, Rounds

MAX_HYPOTHESES = 256
"""Hypotheses of a class."""


class OnlineOptimal(FiniteClassParams):
    """Parameters of the standard optimal algorithm."""


class State(NamedTuple):
    votes: shared.State
    dimension: int
    """Littlestone dimension of the class."""


def faults(params: OnlineOptimal, kinds: Sequence[str]) -> Iterator[Fault]:
    faults_ = [*params.hypotheses.faults(kinds)]
    yield from faults_
    place = "/learner/hypotheses"
    if isinstance(params.hypotheses, ExpertClass):
        yield Fault(place, "The predictions of experts are not known beforehand: use halving.", "not_offered")
    elif not faults_:
        table = params.hypotheses.table(len(kinds))
        if table.shape[1] > MAX_HYPOTHESES:
            detail = f"The class has {table.shape[1]} hypotheses, of which {MAX_HYPOTHESES} are allowed: use halving."
            yield Fault(place, detail, "too_large")
            return
        try:
            search = Littlestone(table)
            search.dimension(search.everything)
        except InvalidData as error:
            yield Fault(place, error.detail, "too_large")


def start(params: OnlineOptimal, width: int) -> State:
    search = Littlestone(params.hypotheses.table(width))
    return State(shared.start(params, width), search.dimension(search.everything))


def play(params: OnlineOptimal, state: State, rounds: Rounds) -> Played:
    search = Littlestone(params.hypotheses.table(rounds.x.shape[1]))
    votes, after, predictions = shared.play(params, state.votes, rounds, shared.GIVEN, optimal=search)
    bound = shared.realisable(after, state.dimension)
    return shared.played(votes, after, predictions, bound, state.votes)._replace(state=State(votes, state.dimension))


def hypothesis(params: OnlineOptimal, weights: Vector) -> Hypothesis:
    width = max(weights.size.bit_length() - 1, 1)  # of disjunctions, the only class whose table depends on it
    return shared.ruled_by(params, Littlestone(params.hypotheses.table(width)).predictions(weights))


def summary(params: OnlineOptimal, state: State, inputs: Inputs) -> JSON:
    return shared.summary(params, state.votes, inputs) | {"littlestone_dimension": state.dimension}


LEARNER = OnlineLearner(
    params=OnlineOptimal,
    state=State,
    start=start,
    play=play,
    faults=faults,
    kept=lambda state: state.votes.kept,
    hypothesis=hypothesis,
    bound="Mistakes are at most the Littlestone dimension of the class, if one of its hypotheses gives all labels.",
    hypotheses=lambda params, state: float(state.votes.errors.size),
    levels=lambda params: params.hypotheses.levels(),
    summary=summary,
)
