r"""Online gradient descent: weights that follow the slope of each round's convex loss, within a ball or a box.

w¹ = 0,  wᵗ⁺¹ = Π(wᵗ − ηvᵗ)  with vᵗ a subgradient of the round's loss at wᵗ and Π the projection onto the set. For
every u of the set the regret is at most  ‖u‖²/(2η) + ½η Σ‖vᵗ‖²;  with η = B/(ρ√T), B the length of the longest u and
ρ that of the longest v, it is at most Bρ√T in T rounds. Without a number of rounds the doubling trick starts anew in
periods of 1, 2, 4, … rounds, at the price of a factor 3.415.

The regret is that of the losses' tangents,  Σ⟨vᵗ, wᵗ⟩ + max ⟨−Σvᵗ, u⟩:  losses are convex, so it is no less than the
regret against the best u of the set, and needs no row to be kept.

In short: Each row moves the weights a step down the slope of its own loss. Whatever the rows, the mean loss comes as
near to that of the best fixed weights as 1/√T.

References: Zinkevich (2003), Proc. 20th ICML, 928; Shalev-Shwartz & Ben-David (2014), Understanding Machine Learning,
section 14.4, theorem 21.15 and exercise 21.4.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
from pydantic import Field

from app.base.faults import Fault
from app.ml.contract.algorithm import JSON, Params, Vector
from app.ml.numerics.online_learning.compiled.linear_rounds import descent_rounds
from app.ml.online_learner import Hypothesis, Inputs, Kept, OnlineLearner, Played, Rounds, above, number_faults

KINDS = {"hinge": 0, "logistic": 1, "squared": 2}


class OnlineGradientDescent(Params):
    """Parameters of online gradient descent."""

    loss: Literal["hinge", "logistic", "squared"] = Field(
        "logistic",
        description="Loss that is minimised: hinge or logistic of two labels, or the squared error of a number.",
    )
    projection: Literal["ball", "box"] = Field(
        "ball",
        description="Set of the weights: `ball`: their length is at most `radius`; `box`: each is between -radius and "
        "radius.",
    )
    radius: float = Field(
        1.0, gt=0, le=1e12, description="Largest distance of the weights, with the intercept, from 0."
    )
    lipschitz: float = Field(
        1.0,
        gt=0,
        le=1e12,
        description="Length ρ of the longest subgradient that is expected, which sets the step: for hinge and logistic "
        "loss that of the longest row, with its constant. Longer ones are learned all the same.",
    )
    horizon: int | None = Field(
        None, ge=1, le=2**53, description="Number of rounds T that the step is tuned for; null: the doubling trick."
    )
    learning_rate: float | None = Field(
        None,
        gt=0,
        le=1e12,
        description="Length η of every step, by which a slope is multiplied; null: B/(ρ√T), B the length of the "
        "longest weights.",
    )
    fit_intercept: bool = Field(True, description="Fits a constant term, which counts as one of the weights.")


class State(NamedTuple):
    kept: Kept
    drift: Vector
    slopes: Vector
    sums: Vector
    """[5], as `descent_rounds` keeps them."""


def faults(params: OnlineGradientDescent, kinds: Sequence[str]) -> Iterator[Fault]:
    yield from number_faults(params, kinds)
    if params.learning_rate is not None and params.horizon is not None:
        yield Fault("/learner/horizon", "A learning_rate leaves nothing to tune: give one of the two.")


def start(params: OnlineGradientDescent, width: int) -> State:
    size = width + 1
    return State(Kept.of(np.zeros(size)), np.zeros(size), np.zeros(size), np.array([0.0, 0.0, 0.0, 0.0, 1.0]))


def _reach(params: OnlineGradientDescent, size: int) -> float:
    """Squared length of the longest weights of the set."""
    return params.radius**2 * (1 if params.projection == "ball" else size)


def _rate(params: OnlineGradientDescent, size: int) -> float:
    if params.learning_rate is not None:
        return params.learning_rate
    tuned = math.sqrt(_reach(params, size)) / params.lipschitz
    return -tuned if params.horizon is None else tuned / math.sqrt(params.horizon)


def play(params: OnlineGradientDescent, state: State, rounds: Rounds) -> Played:
    iterates, drift = state.kept.writable(), state.drift.copy()
    slopes, sums, after = state.slopes.copy(), state.sums.copy(), np.empty((len(rounds.x), 3))
    constant = np.full(len(rounds.x), float(params.fit_intercept))
    size = rounds.x.shape[1] + params.fit_intercept
    descent_rounds(
        np.column_stack([rounds.x, constant]), rounds.labels, rounds.scores,
        np.ascontiguousarray(rounds.draws[:, 1]), rounds.turn, KINDS[params.loss], _rate(params, size), params.radius,
        params.projection == "box", _reach(params, size), iterates.last, drift, iterates.chosen, iterates.survivor,
        iterates.runs, slopes, sums, after,
    )  # fmt: skip
    predictions = rounds.scores.copy() if params.loss == "squared" else above(rounds.scores)
    return Played(State(iterates, drift, slopes, sums), predictions, *after.T)


def average(params: OnlineGradientDescent, state: State, turn: int) -> Vector:
    return state.kept.last - state.drift / turn


def hypothesis(params: OnlineGradientDescent, weights: Vector) -> Hypothesis:
    numbers = params.loss == "squared"
    state_of = {
        "coef": weights[None, :-1].copy(),
        "intercept": weights[-1:].copy(),
        "seen": np.ones(0 if numbers else 2, np.bool_),
    }
    loss_of = {} if numbers else {"class_loss": params.loss}
    params_of = {"fit_intercept": params.fit_intercept, **loss_of}
    return Hypothesis("linear_sgd", params_of, state_of | {"rate": 1.0, "weight": 1.0, "steps": 0})


def summary(params: OnlineGradientDescent, state: State, inputs: Inputs) -> JSON:
    weights = state.kept.last.tolist()
    return {"coefficients": dict(zip(inputs.names, weights, strict=False)), "intercept": weights[-1]}


LEARNER = OnlineLearner(
    params=OnlineGradientDescent,
    state=State,
    start=start,
    play=play,
    faults=faults,
    kept=lambda state: state.kept,
    hypothesis=hypothesis,
    bounded=lambda _: "regret",
    bound="The regret against any weights u of the set is at most the sum over periods of ‖u‖²/(2η) + ½η Σ‖v‖², with "
    "the longest u.",
    average=average,
    average_bounded=True,
    numeric=lambda params: params.loss == "squared",
    summary=summary,
)
