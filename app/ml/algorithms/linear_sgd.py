r"""Linear models by gradient descent: any of four losses, all rows at once or one by one, in memory or beyond it.

Minimises  Σ wᵢ ℓ(xᵢβ + b, yᵢ) / Σ wᵢ + ½α‖β‖²  with free intercept b and, for residual r and signs t = ±1 of two
classes, ℓ squared ½r², absolute |r|, hinge max(0, 1 − tz) or logistic log(1 + exp(−tz)). More classes have a score
each: against the rest, or for the logistic loss all together (softmax). Probabilities are those of the logistic loss;
of the others, (1 + z)/2 cut off at 0 and made to sum to 1. A class without rows has none.

`batch` follows the slope of all rows: without a `learning_rate`, in standardised coordinates by limited-memory BFGS;
with one, it is w ← w − rate·∇E as written, which for the squared loss converges just below a rate of 2/λ, λ the largest
eigenvalue of the mean of xxᵀ. Absolute and hinge have no slope at their corner, where their minimum lies: without a
`learning_rate` an interior point method goes there, and the curve `duality_gap` is the share of the loss that it can be
too high by at most. `online` takes a step per row (or `batch_size` rows): with the squared loss and a constant rate r
it is the rule of Widrow and Hoff, w ← w + r·(y − w·x)x. Without a `learning_rate` one is taken from the lengths of the
rows, and no step overshoots its own row. `search` needs no slopes. A rate that is too large is detected and reported,
and the model is the best point met. Texts are learned by `batch` with a loss without a corner.

A fit may start from the coefficients of another one instead of zero; its steps and its rate begin anew. Where the
solver goes to the minimum by an interior point method, the start has no part in the result.

`update` takes rows in their order, one online pass, whatever the solver was. With a rate given, solver online,
`epochs` 1 and no shuffling, fit(A), then update(B), is fit(A and B).

The default penalty is weak where columns are many and rows few. On 120 rows of the benchmark table `wide` the RMSE is
2.45, that of scikit-learn's SGDRegressor with the same penalty 2.15 (unexplained), and 1.65 with `l2` 1.

In short: A weighted sum of the inputs, improved step by step along the gradient of one of four losses. It learns
batch by batch, so the table need not fit into memory.

Use when: rows come in streams or in numbers beyond memory, or the loss shall be absolute or hinge. In memory
`ridge` and `logistic` reach the same minimum of their losses faster. Scale the inputs.

References: Robbins & Monro (1951), Ann. Math. Statist. 22:400; Widrow & Hoff (1960), IRE WESCON Conv. Rec. 4:96;
Mehrotra (1992), SIAM J. Optim. 2:575; Bottou (2012), LNCS 7700:421; Battiti & Brunato, The LION Way, ch. 3 and 9.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from app.base.faults import Fault
from app.ml.contract.algorithm import (
    JSON,
    Accepts,
    Affine,
    Algorithm,
    ColumnUnits,
    Context,
    Data,
    Fit,
    Inputs,
    Labels,
    LinearForm,
    Matrix,
    Params,
    Symmetry,
    Task,
    Vector,
    WarmStart,
)
from app.ml.contract.capacity import planes
from app.ml.contract.staged_fit import fit_in_stages
from app.ml.numerics.linear_algebra.solve import each_row
from app.ml.numerics.linear_models.class_scores import class_probabilities
from app.ml.numerics.linear_models.coefficient_errors import forms
from app.ml.numerics.linear_models.first_learning_rate import LIMITS, first_learning_rate
from app.ml.numerics.linear_models.losses import Loss, MeanLoss, losses
from app.ml.numerics.linear_models.mean_loss_minimum import mean_loss_minimum
from app.ml.numerics.linear_models.stochastic_gradient import sgd_pass
from app.ml.numerics.optimise.gradient_descent import RUNAWAY, Bottom, flat
from app.ml.numerics.optimise.loss_curves import LossCurves
from app.ml.numerics.tensor_graphs.class_tensors import linear_shares

POWERS = {"constant": 0.0, "root": 0.5, "inverse": 1.0}
AT_ONCE = Fault("/solver", "Only the solver online learns rows in an order of difficulty: set solver to online.")
ONE_CLASS = ("There is only one class.",)
NOT_LEARNED = "The learning_rate is too large for these rows: they were not learned."
TEXTS = Fault("/solver", "Texts are learned by batch, and by the squared or the logistic loss: set both.", "wrong_kind")
NO_START = "The minimum of this loss does not depend on the version to start from, and is found without it."


class LinearSGD(Params):
    """A linear model by gradient descent."""

    loss: Literal["squared", "absolute"] = Field("squared", description="Loss that is minimised in regression.")
    class_loss: Literal["logistic", "hinge", "squared", "absolute"] = Field(
        "logistic", description="Loss that is minimised in classification."
    )
    l2: float = Field(
        1e-4,
        ge=0,
        le=1e12,
        description="Penalty α, beside the mean (not the sum) of the losses: minimises "
        "(Σ weight·loss)/(Σ weight) + ½·l2·‖coefficients‖².",
    )
    fit_intercept: bool = Field(
        True, description="Fits a constant term; without it the score is 0 where all inputs are 0."
    )
    solver: Literal["batch", "online", "search"] = Field(
        "batch", description="All rows per step, few rows per step, or trial steps without slopes."
    )
    learning_rate: float | None = Field(
        None, gt=0, le=1e12, description="Length of a step, by which a slope is multiplied; null: chosen from the rows."
    )
    schedule: Literal["constant", "root", "inverse"] = Field(
        "root", description="Decrease of the online rate with steps t: none, by √(1 + t/settling) or by 1 + t/settling."
    )
    settling: float = Field(1000.0, gt=0, le=1e12, description="Steps before the online rate falls.")
    batch_size: int = Field(1, ge=1, le=1_000_000, description="Number of rows of an online step.")
    epochs: int = Field(20, ge=1, le=100_000, description="Number of online passes over the rows.")
    shuffle: bool = Field(True, description="Takes the rows in a new order in each online pass.")
    tol: float = Field(
        1e-9, gt=0, le=1, description="Stop when no slope of the mean loss, or its gap, exceeds this share of it."
    )
    max_iter: int = Field(2000, ge=1, le=1_000_000, description="Maximum number of iterations of `batch` and `search`.")


class State(NamedTuple):
    coef: Matrix
    """(s, d): one score for numbers and for two classes, else one per class."""
    intercept: Vector
    """(s,)."""
    seen: NDArray[np.bool_]
    """(k,) whether there were rows of the class; (0,) for numbers."""
    rate: float
    """Learning rate of the first online step."""
    weight: float
    """Mean weight of the first rows: what counts as one row."""
    steps: int
    """Online steps made."""


def fit(params: LinearSGD, data: Data, context: Context) -> Fit[State]:
    return _fitted(params, _start(params, data), data, context)


def fit_from(params: LinearSGD, state: State, data: Data, context: Context) -> Fit[State]:
    start = _start(params, data)
    resumed = start._replace(coef=state.coef.copy(), intercept=state.intercept.copy())
    fit = _fitted(params, resumed if resumed.coef.shape == start.coef.shape else start, data, context)
    used = _kind(params, data)[0].smooth or params.solver != "batch" or params.learning_rate is not None
    return fit if used else replace(fit, warnings=(*fit.warnings, NO_START))


def moved(state: State, units: ColumnUnits) -> State:
    coef = state.coef.T
    return state._replace(coef=units.coef(coef).T, intercept=state.intercept + units.constant(coef))


def _fitted(params: LinearSGD, state: State, data: Data, context: Context) -> Fit[State]:
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is found out
        if params.solver == "online":
            return fit_in_stages(partial(_online, params), state, data, context)
        if state.seen.sum() == 1:
            return Fit(state, warnings=ONE_CLASS)
        return _offline(params, state, data, context)


def update(params: LinearSGD, state: State, data: Data, context: Context) -> Fit[State]:
    """One pass over these rows in their order. The curve: their mean loss, each before it was learned."""
    seen = state.seen | data.targets.any(axis=0) if state.seen.size else state.seen
    after, loss = _passed(params, state._replace(seen=seen), data, np.arange(len(data.x)))
    if _finite(after) and math.isfinite(loss):
        return Fit(after, converged=False, iterations=1, curves={"loss": [loss]})
    return Fit(state, converged=False, warnings=(NOT_LEARNED,))


def predict(params: LinearSGD, state: State, x: Matrix) -> NDArray[np.float64]:
    scores = each_row(x, state.coef.T) + state.intercept
    if not state.seen.size:
        return np.asarray(scores[:, 0])
    return class_probabilities(scores, state.seen, logistic=params.class_loss == "logistic")


def objective(params: LinearSGD, state: State, data: Data) -> float:
    scored, kind, targets = _scored(params, state, data)
    if not scored.any():
        return 0.0
    loss = losses(kind, data.x @ state.coef[scored].T + params.fit_intercept * state.intercept[scored], targets)
    return float(data.weights @ loss / data.weights.sum() + 0.5 * params.l2 * np.square(state.coef[scored]).sum())


def faults(params: LinearSGD, inputs: Inputs) -> Iterator[Fault]:
    loss = Loss[(params.class_loss if inputs.size.classes else params.loss).upper()]
    if inputs.texts and (params.solver != "batch" or not loss.smooth):
        yield TEXTS


def summary(params: LinearSGD, state: State, units: Affine | None = None) -> JSON:
    classes = np.flatnonzero(state.seen).tolist()
    steps = {"classes": classes, "online_rate": state.rate, "online_steps": state.steps}
    return {**forms(state.coef, state.intercept, units), **steps}


def _start(params: LinearSGD, data: Data) -> State:
    """Zero, with the rate that the lengths of the rows suggest."""
    s = 1 if data.targets.shape[1] <= 2 else data.targets.shape[1]
    seen = np.asarray(data.targets.any(axis=0)) if data.task is Task.CLASSIFICATION else np.zeros(0, bool)
    rate = params.learning_rate or first_learning_rate(*_kind(params, data), data.x, intercept=params.fit_intercept)
    return State(np.zeros((s, data.x.shape[1])), np.zeros(s), seen, rate, float(data.weights.mean()), 0)


def _kind(params: LinearSGD, data: Data) -> tuple[Loss, Matrix]:
    """The loss, and the targets (n, s) that it wants."""
    if data.task is Task.REGRESSION:
        return Loss[params.loss.upper()], data.targets
    if data.targets.shape[1] > 2:
        return Loss.SOFTMAX if params.class_loss == "logistic" else Loss[params.class_loss.upper()], data.signs
    return Loss[params.class_loss.upper()], np.ascontiguousarray(data.signs[:, -1:])


def _scored(params: LinearSGD, state: State, data: Data) -> tuple[NDArray[np.bool_], Loss, Matrix]:
    """The scores that count, the loss and their targets: classes without rows have no part in a minimum."""
    (kind, targets), several = _kind(params, data), state.seen.sum() > 1
    scored = state.seen & several if len(state.coef) > 1 else np.array([several or not state.seen.size])
    return scored, kind, targets[:, scored]


def _offline(params: LinearSGD, state: State, data: Data, context: Context) -> Fit[State]:
    scored, kind, targets = _scored(params, state, data)
    made = MeanLoss.plain if params.learning_rate is not None and params.solver == "batch" else MeanLoss.scaled
    function = made(kind, data.x, targets, data.weights, params.l2, intercept=params.fit_intercept)
    curves = LossCurves(context.progress, params.max_iter)
    warm = bool(state.coef.any())
    start = function.point(state.coef[scored].T, state.intercept[scored]) if warm else function.zero
    bottom = mean_loss_minimum(function, start, params, curves)
    if not warm or bottom.point is not start:  # else it is there already, to the last bit
        coef, intercept = function.linear(bottom.point)
        state.coef[scored], state.intercept[scored] = coef.T, intercept
    if not _finite(state):
        state = _start(params, data)
        bottom = bottom._replace(converged=False, diverged=True)
    return Fit(state, bottom.converged, bottom.iterations, curves.values, _warnings(params, kind, bottom))


def _online(params: LinearSGD, state: State, data: Data, context: Context) -> Fit[State]:
    order, curve = np.arange(len(data.x)), list[float]()
    best, lowest = state, objective(params, state, data)
    ceiling = RUNAWAY * max(lowest, 1.0)
    for epoch in range(params.epochs):
        order = context.rng.permutation(len(order)) if params.shuffle else order
        state, _ = _passed(params, state, data, order)
        value = objective(params, state, data)
        if not (_finite(state) and value <= ceiling):
            return Fit(best, False, epoch + 1, {"loss": curve}, (_too_large(state.rate),))
        curve.append(value)
        context.progress((epoch + 1) / params.epochs, loss=value)
        if value <= lowest or epoch == 0:
            best, lowest = state, value
    warnings = ONE_CLASS if best.seen.sum() == 1 else ()
    return Fit(best, _is_minimum(params, best, data), params.epochs, {"loss": curve}, warnings)


def _passed(params: LinearSGD, state: State, data: Data, order: Labels) -> tuple[State, float]:
    """After one pass in this order, and the mean loss that each row met before it was learned."""
    kind, targets = _kind(params, data)
    coef = np.column_stack([state.coef, state.intercept])
    weights = data.weights / state.weight
    limit = math.inf if params.learning_rate is not None else LIMITS.get(kind, math.inf)
    rows, pace = (data.x, targets, weights, order), np.array([state.rate, params.settling])
    how = params.l2, POWERS[params.schedule], state.steps, limit
    total = sgd_pass(int(kind), *rows, params.batch_size, float(params.fit_intercept), coef, pace, *how)
    steps = state.steps + math.ceil(len(order) / params.batch_size)
    learned = state._replace(coef=np.ascontiguousarray(coef[:, :-1]), intercept=coef[:, -1].copy(), steps=steps)
    return learned, total / float(weights.sum())


def _is_minimum(params: LinearSGD, state: State, data: Data) -> bool:
    scored, kind, targets = _scored(params, state, data)
    if not scored.any():
        return True
    function = MeanLoss.scaled(kind, data.x, targets, data.weights, params.l2, intercept=params.fit_intercept)
    return flat(*function.with_slope(function.point(state.coef[scored].T, state.intercept[scored])), params.tol)


def _finite(state: State) -> bool:
    return bool(np.isfinite(state.coef).all() and np.isfinite(state.intercept).all())


def _too_large(rate: float) -> str:
    return f"The error grew without bound: learning_rate {rate:.3g} is too large. This is the best point on the way."


def _warnings(params: LinearSGD, kind: Loss, bottom: Bottom) -> tuple[str, ...]:
    if bottom.diverged:
        return (_too_large(params.learning_rate or 0.0),)
    if kind.smooth or bottom.converged:
        return ()
    return (f"The {kind.name.lower()} loss has a corner: the coefficients are near its minimum, not at it.",)


ALGORITHM = Algorithm(
    tasks=(Task.REGRESSION, Task.CLASSIFICATION),
    accepts={Accepts.INDICATORS, Accepts.SPARSE},
    params=LinearSGD,
    state=State,
    degrees=lambda params: params.class_loss != "logistic",
    fit=fit,
    update=update,
    in_stages=lambda params: () if params.solver == "online" else (AT_ONCE,),
    passes=lambda params: params.epochs,
    predict=predict,
    graph=linear_shares,
    faults=faults,
    through_origin=lambda params: not params.fit_intercept,
    rowwise=True,
    linear=lambda state: LinearForm.of(state.coef.T, state.intercept),
    capacity=planes,
    objective=objective,
    summary=summary,
    unscaled=summary,
    warm_start=WarmStart(fit_from, moved, equal=("fit_intercept",)),
    breaks={Symmetry.SCALE: "the penalty counts coefficients in the units of their columns"},
)
