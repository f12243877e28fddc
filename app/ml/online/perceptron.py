r"""Perceptron: a plane that moves towards each row it gets wrong.

Predicts the second label where ⟨w, x⟩ > 0, and adds the row to w where that was wrong, or subtracts it. A constant 1
ends every row, so that the plane need not pass through the origin. With M the rounds of mistakes, R the longest row and
any w*, the number of mistakes is at most  F + R‖w*‖√F + R²‖w*‖²,  F the hinge loss of w* on the rounds of M; rows
that w* parts with margin 1 leave F = 0. A comparator w* that is given makes that bound a number.

In short: Each mistake moves a separating plane towards the row. The number of mistakes is bounded by the margin of any
plane that parts the rows, in whatever order they come.

References: Novikoff (1962), Symp. Math. Theory of Automata 12:615; Shalev-Shwartz & Ben-David (2014), Understanding
Machine Learning, theorem 21.16.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from pydantic import Field

from app.base.faults import Fault
from app.base.wire import Body
from app.ml.contract.algorithm import JSON, Params, Vector
from app.ml.numerics.online_learning.compiled.linear_rounds import perceptron_rounds
from app.ml.online_learner import (
    Hypothesis,
    Inputs,
    Kept,
    OnlineLearner,
    Played,
    Rounds,
    above,
    number_faults,
    wrong,
)


class Comparator(Body):
    """Weights w* that the mistakes are compared with."""

    coefficients: list[float] = Field(
        min_length=1, max_length=10_000, description="A coefficient for each input, in their order."
    )
    intercept: float = Field(0.0, description="Constant term of w*.")


class OnlinePerceptron(Params):
    """Parameters of the online perceptron."""

    fit_intercept: bool = Field(True, description="Fits a constant term; without it the plane passes through 0.")
    comparator: Comparator | None = Field(
        None,
        description="Weights w* for the bound F + R‖w*‖√F + R²‖w*‖² on the mistakes; those that part the rows with "
        "margin 1 make F zero. Null: there is no bound.",
    )


class State(NamedTuple):
    kept: Kept
    drift: Vector
    sums: Vector
    """[3] R², mistakes, F."""


def faults(params: OnlinePerceptron, kinds: Sequence[str]) -> Iterator[Fault]:
    yield from number_faults(params, kinds)
    comparator = params.comparator
    if comparator is None:
        return
    if len(comparator.coefficients) != len(kinds):
        detail = f"There are {len(comparator.coefficients)} coefficients for {len(kinds)} inputs."
        yield Fault("/learner/comparator/coefficients", detail, "wrong_length")
    if comparator.intercept and not params.fit_intercept:
        detail = "Without fit_intercept there is no constant term: leave it out."
        yield Fault("/learner/comparator/intercept", detail)
    if not max(map(abs, [*comparator.coefficients, comparator.intercept])) <= 1e50:
        yield Fault("/learner/comparator/coefficients", "Numbers may not exceed 1e50.", "too_large")


def start(params: OnlinePerceptron, width: int) -> State:
    size = width + 1
    return State(Kept.of(np.zeros(size)), np.zeros(size), np.zeros(3))


def play(params: OnlinePerceptron, state: State, rounds: Rounds) -> Played:
    iterates, drift, sums = state.kept.writable(), state.drift.copy(), state.sums.copy()
    after, comparator = np.empty((len(rounds.x), 3)), _comparator(params)
    constant = np.full(len(rounds.x), float(params.fit_intercept))
    perceptron_rounds(
        np.column_stack([rounds.x, constant]), rounds.labels, rounds.scores,
        np.ascontiguousarray(rounds.draws[:, 1]), rounds.turn, comparator, iterates.last, drift, iterates.chosen,
        iterates.survivor, iterates.runs, sums, after,
    )  # fmt: skip
    predictions = above(rounds.scores)
    bound = np.full(len(after), np.nan)
    if comparator.size:
        reach, hinge = after[:, 0] * (comparator @ comparator), after[:, 2]
        bound = hinge + np.sqrt(reach * hinge) + reach
    unknown = np.full(len(after), np.nan)
    return Played(State(iterates, drift, sums), predictions, wrong(predictions, rounds.labels), unknown, bound)


def _comparator(params: OnlinePerceptron) -> Vector:
    """(p + 1,), or none."""
    comparator = params.comparator
    return np.zeros(0) if comparator is None else np.array([*comparator.coefficients, comparator.intercept])


def average(params: OnlinePerceptron, state: State, turn: int) -> Vector:
    return state.kept.last - state.drift / turn


def hypothesis(params: OnlinePerceptron, weights: Vector) -> Hypothesis:
    """Opposite scores of the two classes."""
    coef = np.vstack([-weights, weights])
    none = {"rounds": 0, "mistakes": 0, "radius": 1.0, "margin": math.nan, "bound": math.nan}
    state_of = {"coef": coef, "drift": np.zeros(coef.shape), "seen": np.ones(2, np.bool_)}
    return Hypothesis("perceptron", {"average": "never", "fit_intercept": params.fit_intercept}, state_of | none)


def summary(params: OnlinePerceptron, state: State, inputs: Inputs) -> JSON:
    weights = state.kept.last.tolist()
    return {
        "coefficients": dict(zip(inputs.names, weights, strict=False)),
        "intercept": weights[-1],
        "radius": math.sqrt(state.sums[0]),
    }


LEARNER = OnlineLearner(
    params=OnlinePerceptron,
    state=State,
    start=start,
    play=play,
    faults=faults,
    kept=lambda state: state.kept,
    hypothesis=hypothesis,
    bound="Mistakes are at most F + R‖w*‖√F + R²‖w*‖² for the comparator w*: F is its hinge loss in the rounds of "
    "mistakes, R the length of the longest row.",
    average=average,
    hypotheses=lambda params, state: state.sums[1] + 1,
    summary=summary,
)
