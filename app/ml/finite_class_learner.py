"""Parts that learners over a finite class share: their parameters, their state and the play of their rounds."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from pydantic import Field

from app.base.faults import Fault
from app.ml.contract.algorithm import JSON, Labels, Matrix, Params, Vector
from app.ml.numerics.online_learning.compiled.class_rounds import (
    DRAWN,
    FIRST,
    GIVEN,
    HALVED,
    MAJORITY,
    Predictions,
    class_rounds,
)
from app.ml.numerics.online_learning.finite_classes import ExpertClass, Hypotheses
from app.ml.numerics.online_learning.littlestone import Littlestone
from app.ml.online_learner import Hypothesis, Inputs, Kept, Played, Rounds, above, learned, rule, ruled

__all__ = ["DRAWN", "FIRST", "GIVEN", "HALVED", "MAJORITY"]
LISTED = 20
"""Hypotheses that a summary lists."""
NOTHING = np.zeros(0)


class FiniteClassParams(Params):
    """Parameters of a learner over a finite class."""

    hypotheses: Hypotheses = Field(description="Class of hypotheses: given as a table, or by name.")


class State(NamedTuple):
    kept: Kept
    """Vectors of weights (m,)."""
    total: Vector
    """(m,) sum of the weights of all rounds, each with the sum 1."""
    errors: Vector
    """(m,) mistakes of each hypothesis."""
    sums: Vector
    """[5], as `class_rounds` keeps them."""


def faults(params: FiniteClassParams, kinds: Sequence[str]) -> Iterator[Fault]:
    yield from params.hypotheses.faults(kinds)


def start(params: FiniteClassParams, width: int) -> State:
    size = class_size(params, width)
    return State(Kept.of(np.ones(size)), np.zeros(size), np.zeros(size), np.array([0.0, 0.0, 0.0, 0.0, 1.0]))


def class_size(params: FiniteClassParams, width: int) -> int:
    """Number of hypotheses."""
    hypotheses = params.hypotheses
    return width if isinstance(hypotheses, ExpertClass) else hypotheses.table(width).shape[1]


def play(
    params: FiniteClassParams,
    state: State,
    rounds: Rounds,
    rule_of: int,
    *,
    rate: float = 0.0,
    optimal: Littlestone | None = None,
) -> tuple[State, Matrix, Vector]:
    """The state after the rounds, `after` of `class_rounds` (n, 3), and predictions (n,)."""
    table, cells = _table(params, rounds.x)
    iterates, after = state.kept.writable(), np.empty((len(rounds.x), 3))
    total, errors, sums = state.total.copy(), state.errors.copy(), state.sums.copy()
    turns = rounds.turn + np.concatenate([[0], np.cumsum(learned(rounds.labels))])
    place = 0
    while place < len(cells):
        optimal_rows = NOTHING if optimal is None else optimal.predictions(iterates.last)
        place = class_rounds(
            table, cells, rounds.labels, rounds.scores, rounds.draws, place, int(turns[place]), rule_of, rate,
            optimal_rows, iterates.last, total, iterates.chosen, iterates.survivor, iterates.runs, errors, sums, after,
        )  # fmt: skip
    predictions = above(rounds.scores, rounds.draws[:, 0]) if rule_of == DRAWN else above(rounds.scores, 0.5)
    return State(iterates, total, errors, sums), after, predictions


def realisable(after: Matrix, mistakes: float) -> Vector:
    """(n,) a bound on the mistakes, where some hypothesis gave each label of those left; NaN elsewhere."""
    return np.where(after[:, 2] == 0, mistakes, np.nan)


def regretted(state: State, after: Matrix) -> Vector:
    """(n,) cumulative loss less that of the best hypothesis. state: before the rounds."""
    return np.cumsum([state.sums[1], *np.nan_to_num(after[:, 0])])[1:] - after[:, 1]


def played(state: State, after: Matrix, predictions: Vector, bound: Vector, before: State) -> Played:
    return Played(state, predictions, after[:, 0], regretted(before, after), bound)


def _table(params: FiniteClassParams, x: Matrix) -> tuple[Predictions, Labels]:
    hypotheses = params.hypotheses
    if isinstance(hypotheses, ExpertClass):
        return np.ascontiguousarray(x, np.uint8), np.arange(len(x))
    return hypotheses.table(x.shape[1]), hypotheses.cells(x)


def voted(params: FiniteClassParams, weights: Vector, *, shares: bool = False) -> Hypothesis:
    """The weighted majority: rules for the cells of the class, or a plane for experts.

    shares: whether probabilities are the shares of the weights.
    """
    if isinstance(params.hypotheses, ExpertClass):
        return _plane(weights / weights.sum())
    share = _cells(params, weights) @ weights / weights.sum()
    return ruled_by(params, share if shares else 1.0 * (share > 0.5))


def first(params: FiniteClassParams, weights: Vector) -> Hypothesis:
    """The first hypothesis with weight."""
    alone = np.zeros(weights.size)
    alone[int(np.flatnonzero(weights)[0])] = 1.0
    return voted(params, alone)


def ruled_by(params: FiniteClassParams, values: Vector) -> Hypothesis:
    """Probabilities (c,) of the second label by cell, as rules."""
    return ruled([rule(tests, share) for tests, share in params.hypotheses.regions(values)])


def _cells(params: FiniteClassParams, weights: Vector) -> Matrix:
    width = max(weights.size.bit_length() - 1, 1)  # of disjunctions, the only class whose table depends on it
    return params.hypotheses.table(width).astype(np.float64)


def _plane(shares: Vector) -> Hypothesis:
    """Σ share·x > ½, as opposite scores of two classes."""
    coef = np.append(2 * shares, -1.0)
    none = {"rounds": 0, "mistakes": 0, "radius": 1.0, "margin": math.nan, "bound": math.nan}
    state_of = {"coef": np.vstack([-coef, coef]), "drift": np.zeros((2, coef.size)), "seen": np.ones(2, np.bool_)}
    return Hypothesis("perceptron", {"average": "never"}, state_of | none)


def summary(params: FiniteClassParams, state: State, inputs: Inputs) -> JSON:
    weights = state.kept.last
    heaviest = np.argsort(-weights, kind="stable")[:LISTED]
    shown = [place for place in heaviest.tolist() if weights[place] > 0]
    return {
        "hypotheses": int(weights.size),
        "remaining": int((weights > 0).sum()),
        "fewest_mistakes": int(state.errors.min()),
        "unexplained": int(state.sums[2]),
        "heaviest": [{"hypothesis": place, "weight": float(weights[place] / weights.sum())} for place in shown],
    }
