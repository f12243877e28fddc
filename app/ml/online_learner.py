"""The contract of an online learner.

A file of `app/ml/online/` defines a `Params` class, a `State` NamedTuple of arrays, and plain functions, and states
them in one `LEARNER` record. The file's name is the learner's name. In each round a learner predicts a row by its
present hypothesis, a vector, and then learns the label. Labels are 0 and 1, or numbers.

References: Shalev-Shwartz & Ben-David (2014), Understanding Machine Learning, chapter 21; Littlestone (1988),
Mach. Learn. 2:285.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import numpy as np

from app.base.faults import Fault
from app.ml.contract.algorithm import JSON, Labels, Matrix, Params, Vector
from app.ml.contract.columns import ColumnKind
from app.ml.numerics.rules.conditions import Rule, Truths

P = TypeVar("P", bound=Params)
S = TypeVar("S")
NUMBERS = frozenset({ColumnKind.NUMERIC, ColumnKind.BOOLEAN})


class Rounds(NamedTuple):
    """Rounds of n rows, in order."""

    x: Matrix
    """(n, p) finite numbers: booleans 0 and 1, categories the place of their level."""
    labels: Vector
    """(n,); NaN: it comes later."""
    scores: Vector
    """(n,) of a round that was predicted before; NaN: it is predicted now. Learners write it."""
    draws: Matrix
    """(n, 2) uniform in [0, 1), by the number of the round: for its prediction, and for the round that is kept."""
    turn: int
    """Rounds learned before."""


class Played(NamedTuple):
    """Rounds after they were played."""

    state: Any
    predictions: Vector
    """(n,) labels."""
    losses: Vector
    """(n,); NaN where there is no label."""
    regret: Vector
    """(n,) after each round, cumulative loss less that of the best in hindsight, or more; NaN: unknown."""
    bound: Vector
    """(n,) after each round: the theorem's bound on the mistakes or the regret so far; NaN: none holds."""


class Kept(NamedTuple):
    """Hypotheses (k,) of a sequence, as `app.ml.numerics.online_learning.compiled.kept_hypotheses` explains them."""

    last: Vector
    chosen: Vector
    survivor: Vector
    runs: Labels
    """[2]."""

    @classmethod
    def of(cls, first: Vector) -> "Kept":
        """Before the first round, with this hypothesis."""
        return cls(first, first.copy(), first.copy(), np.array([1, 0]))

    def writable(self) -> "Kept":
        return Kept(self.last.copy(), self.chosen.copy(), self.survivor.copy(), self.runs.copy())

    def longest(self, turn: int) -> tuple[Vector, int]:
        """The hypothesis that predicted in most rounds in a row, after `turn` rounds, and their number."""
        running = turn - int(self.runs[0]) + 1
        return (self.last, running) if running >= self.runs[1] else (self.survivor, int(self.runs[1]))


class Hypothesis(NamedTuple):
    """A fixed hypothesis as a model of the catalogue."""

    algorithm: str
    """Its name."""
    params: Mapping[str, JSON]
    fields: Mapping[str, Any]
    """Fields of the algorithm's state."""


class Inputs(NamedTuple):
    """Columns of the rows."""

    names: tuple[str, ...]
    kinds: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class OnlineLearner(Generic[P, S]):
    """One learner, as its file states it."""

    params: type[P]
    state: type[S]
    start: Callable[[P, int], S]
    """Maps (params, number of inputs) to the state before the first round."""
    play: Callable[[P, S, Rounds], Played]
    """Plays rounds: the result does not depend on how they are split."""
    faults: Callable[[P, Sequence[str]], Iterator[Fault]]
    """Faults of the parameters for inputs of these kinds."""
    kept: Callable[[S], Kept]
    hypothesis: Callable[[P, Vector], Hypothesis]
    """The model of one of the kept vectors."""
    bounded: Callable[[P], Literal["mistakes", "regret"]] = lambda _: "mistakes"
    """The quantity that the theorem bounds."""
    bound: str
    """The theorem in one sentence."""
    average: Callable[[P, S, int], Vector] | None = None
    """Mean of the hypotheses of all rounds; None: it is no hypothesis."""
    average_bounded: bool = False
    """True if the loss is convex in the hypothesis: a bound on the regret holds for the mean of the hypotheses too."""
    hypotheses: Callable[[P, S], float] = lambda _, __: math.nan
    """The most hypotheses that a sequence can have; NaN: unknown."""
    levels: Callable[[P], tuple[str, ...]] = lambda _: ()
    """Categories of its only input, ascending; none where it is not categorical."""
    numeric: Callable[[P], bool] = lambda _: False
    """True if labels are numbers."""
    summary: Callable[[P, S, Inputs], JSON]
    """The present hypothesis, for people."""


def learned(labels: Vector) -> Truths:
    """(n,) rounds with a label."""
    is_learned: Truths = ~np.isnan(labels)
    return is_learned


def above(scores: Vector, border: Vector | float = 0.0) -> Vector:
    """(n,) labels: 1 where a score is above the border."""
    return np.asarray(scores > border, np.float64)


def wrong(predictions: Vector, labels: Vector) -> Vector:
    """(n,) 1 for a mistake, 0 for none; NaN where there is no label."""
    return np.where(learned(labels), predictions != labels, np.nan)


def number_faults(_: Params, kinds: Sequence[str]) -> Iterator[Fault]:
    """Faults of inputs that are no numbers."""
    for place, kind in enumerate(kinds):
        if kind not in NUMBERS:
            yield Fault(f"/inputs/{place}/kind", "This learner takes numeric and boolean inputs.", "wrong_inputs")


def rule(tests: Any, share: float) -> Rule:
    """A rule that gives the second class with this probability."""
    return Rule(tests, np.array([1.0 - share, share]), 0.0, 0.0)


def ruled(rules: Sequence[Rule]) -> Hypothesis:
    """Rules of which at most one fires, or all that fire agree; the first class elsewhere."""
    state = {"rules": tuple(rules), "otherwise": np.array([1.0, 0.0]), "conflicts": np.zeros((0, 3))}
    return Hypothesis("rules", {}, state)
