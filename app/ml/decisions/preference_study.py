"""Preferences of a person between candidates: the request, and the weights of goals that follow from it."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy
from pydantic import Field, model_validator

from app.base.wire import Body
from app.ml.contract.algorithm import Matrix, Vector
from app.ml.decisions.design_request import Number
from app.ml.numerics.acquisition.pair_information import first_preferred, pair_information
from app.ml.numerics.linear_models.preference_weights import PreferenceWeights, preference_weights

DRAWS = 4096
"""Weights that are drawn to find how probably a candidate is the best."""
CONSTANT, NARROWEST = 1e-14, 1e-90
"""Differences of a goal that rounding explains, by its largest value; and those that would need weights beyond the
range of `optimise`. Such a goal is the same for all candidates."""
NOTHING = 1e-12
"""Bits that rounding explains."""
SHARES = {"first": 1.0, "equal": 0.5, "second": 0.0}


class PreferenceGoal(Body):
    """A goal whose weight is learned."""

    name: str = Field(min_length=1, max_length=200, description="Name of the goal.")
    aim: Literal["maximise", "minimise", "target"] = Field(
        "maximise", description="maximise or minimise the value, or bring it as near to a target as possible."
    )
    value: Number | None = Field(None, description="Value of a target; null for maximise and minimise.")

    @model_validator(mode="after")
    def _of_aim(self) -> "PreferenceGoal":
        if (self.value is None) != (self.aim != "target"):
            raise ValueError("A target has a value, maximise and minimise have none.")
        return self


class Candidate(Body):
    """A candidate, which a person compares with others."""

    values: dict[str, Number] = Field(min_length=1, max_length=20, description="Value of each goal, by its name.")
    row: dict[str, Any] | None = Field(
        None, description="Whatever a person has to see of it, such as its inputs by column; null: its values alone."
    )


class PairComparison(Body):
    """Comparison of two candidates by a person."""

    first: int = Field(ge=0, lt=2**31, description="Number of the first candidate, from 0.")
    second: int = Field(ge=0, lt=2**31, description="Number of the second candidate, from 0.")
    preferred: Literal["first", "second", "equal"] = Field(
        description="first or second: that candidate is better. equal: they are equally good."
    )


class Pair(NamedTuple):
    """A pair of candidates to compare."""

    first: int
    second: int
    probability: float
    """Probability that the first is preferred."""
    information: float
    """Bits."""


class PreferenceStudy(NamedTuple):
    """Goals, candidates and comparisons, without faults."""

    goals: Sequence[PreferenceGoal]
    candidates: Sequence[Candidate]
    comparisons: Sequence[PairComparison]
    l2: float

    def learned(self) -> "LearnedWeights":
        gains = np.array([[_gain(goal, candidate.values) for goal in self.goals] for candidate in self.candidates])
        largest, width = np.abs(gains).max(axis=0), np.ptp(gains, axis=0)
        varies = (width > CONSTANT * largest) & (width > NARROWEST)
        unit = np.where(varies, width, 1.0)
        points = np.where(varies, (gains - gains.mean(axis=0)) / unit, 0.0)
        deviation = np.where(varies, points.std(axis=0), 1.0)
        points, scale = points / deviation, unit * deviation
        first = np.array([comparison.first for comparison in self.comparisons], np.intp)
        second = np.array([comparison.second for comparison in self.comparisons], np.intp)
        share = np.array([SHARES[comparison.preferred] for comparison in self.comparisons])
        return LearnedWeights(self, points, scale, preference_weights(points[first] - points[second], share, self.l2))


class LearnedWeights:
    """Weights of goals, and all that follows from them."""

    def __init__(self, study: PreferenceStudy, points: Matrix, scale: Vector, weights: PreferenceWeights) -> None:
        """points: (m, d) goals of candidates about their mean, over their scales (d,); larger is better."""
        self._study, self._points, self._scale, self._weights = study, points, scale, weights

    @property
    def mean(self) -> Vector:
        """(d,) logarithm of the odds of being preferred, per unit of each goal."""
        return self._weights.mean / self._scale

    @property
    def errors(self) -> Vector:
        """(d,) standard deviation of each weight."""
        return self._weights.errors() / self._scale

    @property
    def positive(self) -> Vector:
        """(d,) probability that each weight is above 0."""
        probabilities: Vector = scipy.special.ndtr(self._weights.mean / self._weights.errors())
        return probabilities

    @property
    def shares(self) -> Vector:
        """(d,) part of each goal in the spread of candidates, of sum 1; equal parts where no weight is known."""
        size = np.abs(self._weights.mean)
        return size / size.sum() if size.any() else np.full(len(size), 1 / len(size))

    @cached_property
    def utilities(self) -> Vector:
        """(m,) sum of weights times goals, less that of the mean candidate."""
        utilities: Vector = self._points @ self._weights.mean
        return utilities

    @cached_property
    def best(self) -> Vector:
        """(m,) probability that each candidate has the largest sum; of equal ones the first counts."""
        normal = np.random.Generator(np.random.PCG64(0)).standard_normal((len(self._scale), DRAWS))
        winners = (self._points @ self._weights.draws(normal)).argmax(axis=0)
        return np.bincount(winners, minlength=len(self._points)) / DRAWS

    @property
    def contradicted(self) -> int:
        """Number of comparisons whose preferred candidate has the smaller sum."""
        signs = {"first": 1.0, "second": -1.0, "equal": 0.0}
        return sum(
            signs[comparison.preferred] * (self.utilities[comparison.first] - self.utilities[comparison.second]) < 0
            for comparison in self._study.comparisons
        )

    def next_pair(self) -> Pair | None:
        """The most informative pair on the weights, of those not yet compared; None: there is none left."""
        compared = {frozenset((comparison.first, comparison.second)) for comparison in self._study.comparisons}
        pairs = [pair for pair in combinations(range(len(self._points)), 2) if frozenset(pair) not in compared]
        if not pairs:
            return None
        first, second = np.array(pairs).T
        differences = self._points[first] - self._points[second]
        means, spreads = differences @ self._weights.mean, self._weights.spreads(differences)
        information = pair_information(means, spreads)
        place = int(information.argmax())
        if information[place] < NOTHING:
            return None
        chance = first_preferred(means[[place]], spreads[[place]])
        return Pair(int(first[place]), int(second[place]), float(chance[0]), float(information[place]))


def _gain(goal: PreferenceGoal, values: Mapping[str, float]) -> float:
    """Larger is better: as `optimise` counts a goal in its weighted sum."""
    value = values[goal.name]
    if goal.aim == "target":
        return -abs(value - (goal.value or 0.0))
    return value if goal.aim == "maximise" else -value
