r"""Perceptron: a weighted sum per class, corrected only by the rows it gets wrong.

Rows come one by one. Where another class scores no less than a row's own, the row is added to the vector of its
class and taken, in equal parts, from those of its rivals; else nothing happens. With two classes the vectors are
opposite and this is Rosenblatt's rule  w ← w + y·x. From zero a rate would only scale the scores, so there is none. The
intercept is the weight of a 1 that ends every row. If some weights separate the classes by a margin γ, no order of rows
makes more than (R/γ)² mistakes, R the longest row; if none do, any weights w* still bound them by
F + R‖w*‖√F + R²‖w*‖², with F the hinge loss of w* on the rounds of mistakes. The fit ends with a pass without mistakes,
or after `epochs` passes. It predicts by the last weights if they separate the training rows, else by their average
over all rounds, which wavers less: then `epochs` passes are the whole method, and only last weights that do not
separate the rows have not converged. A row weight scales the row's corrections.

Probabilities are the softmax of the scores, in units of R, times one number: that of the largest likelihood for rows
which fits without them have scored (`cv` folds). It changes no prediction. Without folds shares are no probabilities:
of two classes they are (1 ± s)/2 with s the depth of the row on its side, in units of R.

A fit may start from the last weights of another one instead of zero; then nothing bounds its mistakes.

`update` takes rows in their order, once. So fit(A), then update(B), with `epochs` 1 and no shuffling, is fit(A and B).

In short: Rows are shown one after the other, and each mistake moves a separating plane towards the row. If the
classes can be separated it ends without mistakes, after a bounded number of them.

Use when: classes part by a plane or nearly so, and rows come in streams or in numbers beyond memory.

Two opposite points: one mistake, as many as the theorem allows. XOR is parted by no plane.

>>> rows, points = Context.of(0), [[1.0, 1.0], [-1.0, -1.0]]
>>> state = fit(Perceptron(fit_intercept=False), Data.of(Task.CLASSIFICATION, points, [1, 0]), rows).state
>>> state.coef[1, :2].tolist(), state.mistakes, round((state.radius / state.margin) ** 2, 12)
([1.0, 1.0], 1, 1.0)
>>> xor = Data.of(Task.CLASSIFICATION, [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0])
>>> fit(Perceptron(average="never"), xor, rows).converged
False

References: Rosenblatt (1958), Psychol. Rev. 65:386; Novikoff (1962), Symp. Math. Theory of Automata 12:615;
Shalev-Shwartz & Ben-David (2014), Understanding Machine Learning, theorem 21.16;
Battiti & Brunato, The LION Way, ch. 4.
"""

import math
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from app.base.errors import InvalidData
from app.ml.contract.algorithm import (
    JSON,
    Accepts,
    Affine,
    Algorithm,
    ColumnUnits,
    Context,
    Data,
    Fit,
    Labels,
    LinearForm,
    Matrix,
    Params,
    Symmetry,
    Task,
    Vector,
    WarmStart,
)
from app.ml.contract.capacity import Capacity, Mistakes, planes
from app.ml.contract.explanations import column_sums
from app.ml.contract.named_numbers import every
from app.ml.contract.progress import part_of, silent
from app.ml.contract.sparse_rows import sparse
from app.ml.numerics.class_probabilities.sharpness import sharpness
from app.ml.numerics.linear_algebra.solve import each_row
from app.ml.numerics.linear_models.class_scores import sign_probabilities
from app.ml.numerics.linear_models.coefficient_errors import forms
from app.ml.numerics.linear_models.mistake_bound import MAX_SUMMABLE, longest_row, mistake_bound
from app.ml.numerics.linear_models.perceptron import perceptron_pass, unit_planes
from app.ml.numerics.linear_models.softmax import probabilities
from app.ml.numerics.linear_models.sparse_perceptron import sparse_perceptron_pass
from app.ml.numerics.sampling.content_order import in_content_order
from app.ml.numerics.sampling.folds import dealt
from app.ml.numerics.tensor_graphs.class_tensors import sharp_shares


class Perceptron(Params):
    """Rosenblatt's perceptron for two and more classes."""

    epochs: int = Field(100, ge=1, le=100_000, description="Maximum number of passes over the rows.")
    shuffle: bool = Field(
        True, description="Takes the rows in a new order in each pass; false: in the order of the table."
    )
    fit_intercept: bool = Field(
        True, description="Fits a constant term; without it the scores are 0 where all inputs are 0."
    )
    average: Literal["auto", "always", "never"] = Field(
        "auto",
        description="Prediction by the average of the weights over all steps, `always` or `never` (by the last "
        "weights). `auto`: by the last weights if they separate the training rows, else by the average.",
    )
    cv: int | None = Field(
        5,
        ge=2,
        le=100,
        description="Number of folds that fit the probabilities; null: shares that are none, in a sixth of the time.",
    )


class State(NamedTuple):
    coef: Matrix
    """(k, d + 1) after the last round; the last column holds the intercepts."""
    drift: Matrix
    """(k, d + 1): coef − drift/rounds is the average over all rounds."""
    seen: NDArray[np.bool_]
    """(k,) whether there were rows of the class."""
    rounds: int
    mistakes: int
    radius: float
    """Length of the longest row, with its constant."""
    margin: float
    """Least distance of a training row to the boundary of the last weights, negative beyond it; NaN: not known."""
    bound: float
    """Mistakes that the theorem allows; NaN: not known."""
    sharpness: float = math.nan
    """Factor of the scores below the softmax; NaN: shares are no probabilities."""


def fit(params: Perceptron, data: Data, context: Context) -> Fit[State]:
    return _fitted(params, _started(np.zeros((data.targets.shape[1], data.x.shape[1] + 1))), data, context)


def fit_from(params: Perceptron, state: State, data: Data, context: Context) -> Fit[State]:
    fit = _fitted(params, _started(state.coef), data, context)
    return replace(fit, state=fit.state._replace(bound=math.nan))


def moved(state: State, units: ColumnUnits) -> State:
    coef = state.coef[:, :-1].T
    return state._replace(coef=np.vstack([units.coef(coef), state.coef[:, -1] + units.constant(coef)]).T)


def _started(coef: Matrix) -> State:
    """Before the first round, with these weights (k, d + 1)."""
    coef = np.ascontiguousarray(coef)
    return State(coef, np.zeros(coef.shape), np.zeros(len(coef), bool), 0, 0, 0.0, math.nan, math.nan)


def _fitted(params: Perceptron, state: State, data: Data, context: Context) -> Fit[State]:
    if params.shuffle:  # else their order is the caller's
        data = in_content_order(data)
    fit = _planes(params, state, data, context)
    if params.cv is None or fit.state.seen.sum() < 2:
        return fit
    fold = dealt(len(data.x), min(params.cv, len(data.x)), context.rng, data.codes)
    scores, quiet = np.zeros(data.targets.shape), replace(context, progress=silent)
    for number in range(int(fold.max()) + 1):
        held = fold == number
        without = _planes(params, state, data.take(~held), quiet).state
        scores[held] = _scores(params, without, data.x[held])
    seen = fit.state.seen
    factor = sharpness(scores[:, seen], data.targets[:, seen], data.weights)
    return replace(fit, state=fit.state._replace(sharpness=factor))


def _planes(params: Perceptron, state: State, data: Data, context: Context) -> Fit[State]:
    curve: list[float] = []
    counts, stages = np.zeros(len(data.x), np.intp), data.stages
    for stage, rows in enumerate(stages):
        stage_context = replace(context, progress=part_of(context.progress, stage, len(stages)))
        state, errors, wrong = _passes(params, state, data, rows, stage_context)
        curve += errors
        counts += wrong
    state = _with_margin(state, _gaps(params, state, data), counts, equal=bool(np.ptp(data.weights) == 0))
    separated = curve[-1] == 0 or state.margin > 0
    converged = separated or params.average != "never"
    return Fit(state, converged, len(curve), {"error_rate": curve}, _warnings(state, separated=separated))


def update(params: Perceptron, state: State, data: Data, context: Context) -> Fit[State]:
    """One pass over these rows in their order. Converged: none was a mistake."""
    n = len(data.x)
    after = _learned(params, state, data, np.arange(n), np.zeros(n, np.intp))
    mistakes = after.mistakes - state.mistakes
    return Fit(after, mistakes == 0, 1, {"error_rate": [mistakes / n]})


def predict(params: Perceptron, state: State, x: Matrix) -> Matrix:
    shares, scores = np.zeros((len(x), len(state.seen))), _scores(params, state, x)[:, state.seen]
    is_sharp = not math.isnan(state.sharpness)
    shares[:, state.seen] = probabilities(state.sharpness * scores) if is_sharp else sign_probabilities(scores)
    return shares


def _scores(params: Perceptron, state: State, x: Matrix) -> Matrix:
    """(n, k) of all classes, 0 of those without rows, in units of the longest row and the longest vector of weights."""
    weights = unit_planes(_weights(params, state), state.radius)
    return np.asarray((each_row(x, weights[:, :-1].T) + weights[:, -1]) * state.seen)


def explain(params: Perceptron, state: State, x: Matrix) -> list[JSON]:
    """For each row what every column adds to the score of each class."""
    weights = _weights(params, state)
    form = LinearForm(weights[:, :-1].T, params.fit_intercept * weights[:, -1])
    return list(column_sums(form, x))


def summary(params: Perceptron, state: State, units: Affine | None = None) -> JSON:
    weights = _weights(params, state)
    return {
        **forms(weights[:, :-1], weights[:, -1], units),
        "classes": every(len(weights)),
        "averaged": weights is not state.coef,
        "rounds": state.rounds,
        "mistakes": state.mistakes,
        "radius": state.radius,
        "margin": None if math.isnan(state.margin) else state.margin,
        "mistake_bound": None if math.isnan(state.bound) else state.bound,
    }


def terms(params: Perceptron, state: State) -> Matrix:
    """(d, k) weights; of two classes those of the second alone, (d, 1)."""
    weights = _weights(params, state)[:, :-1].T
    return weights[:, 1:] if weights.shape[1] == 2 else weights


def capacity(params: Perceptron, state: State, data: Data) -> Capacity:
    mistakes = None if math.isnan(state.bound) else Mistakes(state.mistakes, state.bound, len(data.x))
    return planes(params, state, data)._replace(mistakes=mistakes)


def _passes(
    params: Perceptron, state: State, data: Data, rows: Labels, context: Context
) -> tuple[State, list[float], Labels]:
    """After passes over these rows until none is a mistake; the share of mistakes in each; mistakes (n,) by row."""
    order, counts, curve = rows, np.zeros(len(data.x), np.intp), list[float]()
    while len(curve) < params.epochs and (not curve or curve[-1] > 0):
        if params.shuffle:
            order = rows[context.rng.permutation(rows.size)]
        before, state = state, _learned(params, state, data, order, counts)
        curve.append((state.mistakes - before.mistakes) / rows.size)
        context.progress(len(curve) / params.epochs, error_rate=curve[-1])
    return state, curve, counts


def _learned(params: Perceptron, state: State, data: Data, order: Labels, counts: Labels) -> State:
    """After one pass in this order. Raises InvalidData where products overflow."""
    coef, drift = state.coef.copy(), state.drift.copy()
    constant = float(params.fit_intercept)
    arguments = data.codes, data.weights, order, constant, coef, drift, state.rounds, counts
    rows = sparse(data.x)
    mistakes = perceptron_pass(data.x, *arguments) if rows is None else sparse_perceptron_pass(rows, *arguments)
    radius = max(state.radius, math.hypot(longest_row(data.x), constant))
    if not max(radius, float(np.abs([coef, drift]).max())) < MAX_SUMMABLE:  # NaN is not either
        raise InvalidData("The inputs are too large to be multiplied with each other: scale them.")
    seen = state.seen | data.targets.any(axis=0)
    rounds = state.rounds + len(order)
    return State(coef, drift, seen, rounds, state.mistakes + mistakes, radius, math.nan, math.nan, state.sharpness)


def _gaps(params: Perceptron, state: State, data: Data) -> Vector:
    """(n,) how much more the own class scores than the best other; none with one class."""
    scores = data.x @ state.coef[:, :-1].T + params.fit_intercept * state.coef[:, -1]
    own_scores = np.take_along_axis(scores, data.codes[:, None], axis=1)[:, 0]
    np.put_along_axis(scores, data.codes[:, None], -np.inf, axis=1)
    return np.asarray(own_scores - scores.max(axis=1))


def _with_margin(state: State, gaps: Vector, counts: Labels, *, equal: bool) -> State:
    """With margin and bound. The theorem is about rows of equal weight.

    For k vectors W its ‖w*‖ is √2‖W‖, since a correction is no longer than √2R; for two classes that is ‖w*‖ itself.
    """
    norm = math.sqrt(2) * float(np.linalg.norm(state.coef))
    if norm == 0 or not np.isfinite(gaps).all():
        return state
    margin = float(gaps.min()) / norm
    if not equal:
        return state._replace(margin=margin)
    return state._replace(margin=margin, bound=mistake_bound(gaps, counts, state.radius, norm))


def _weights(params: Perceptron, state: State) -> Matrix:
    last = params.average == "never" or (params.average == "auto" and state.margin > 0)
    return state.coef if last or state.rounds == 0 else state.coef - state.drift / state.rounds


def _warnings(state: State, *, separated: bool) -> tuple[str, ...]:
    if state.seen.sum() == 1:
        return ("There is only one class.",)
    return () if separated else ("No plane was found that separates the classes: some rows stay on the wrong side.",)


ALGORITHM = Algorithm(
    tasks={Task.CLASSIFICATION},
    params=Perceptron,
    state=State,
    degrees=lambda params: params.cv is None,
    fit=fit,
    update=update,
    accepts={Accepts.SPARSE},
    terms=terms,
    in_stages=lambda _: (),
    passes=lambda params: params.epochs,
    predict=predict,
    graph=lambda params, state, x: sharp_shares(unit_planes(_weights(params, state), state.radius), state, x),
    through_origin=lambda params: not params.fit_intercept,
    capacity=capacity,
    seconds=lambda params, size: (params.cv or 1) * 5e-7 * size.cells,
    rowwise=True,
    explain=explain,
    summary=summary,
    unscaled=summary,
    warm_start=WarmStart(fit_from, moved, equal=("fit_intercept",), values="weights"),
    breaks={
        Symmetry.SCALE: "a correction adds the row itself, whose columns count by their units",
        Symmetry.WEIGHTS: "a weight scales the correction by a row, a repeated row may be corrected once only",
    },
)
