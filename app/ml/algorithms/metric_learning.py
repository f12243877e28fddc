r"""Metric learning: a projection in which rows of one class, or pairs that belong together, are near each other.

The distance of rows becomes ‖L(x − y)‖, that is (x − y)ᵀA(x − y) with A = LᵀL, and the projection is Lx: whatever
learns from it by distances has the learned metric. `method` chooses what L makes small:

`nca`, neighbourhood component analysis, minimises the expected error of a nearest neighbour that is drawn with
probability ∝ exp(−‖L(xᵢ − xⱼ)‖²) among all other rows.

`lmnn`, large margin nearest neighbour, draws each row to its `n_neighbors` nearest rows of its class, and pushes rows
of other classes out to a margin of 1 beyond these, in squared distance.

`pairs` learns from pairs that must be together and pairs that cannot, given as relations, without a target. It
maximises the sum of the distances of the latter while the sum of squared distances of the former is held.

Rows are counted from their mean, in units in which the columns have a mean variance of 1. L starts as the plain
Euclidean metric of these, cut to the main directions where `n_components` is below the number of columns, and is
improved by L-BFGS. Directions in which no row varies are left out. The metric of `metric_form` `full` turns the
columns; its coordinates are those along which rows vary most, in descending order. `diagonal` has one weight for each
column: an irrelevant one comes near 0. The losses of `nca` and `lmnn` have several minima: the one found is near the
plain metric. The time of `nca` and `lmnn` grows with the square of the number of rows.

In short: The columns are turned and weighed so that rows known to be alike are near each other, and others far. A row
is described by its coordinates there, in which plain distances are the learned ones.

Use when: neighbours, clusters or pictures should follow known classes or pairs, and all columns counted alike do not.
Put the version in front of `knn` as `preprocessing.projection`.

Two columns, of which the second is noise that hides the classes; it loses its weight:

>>> x = np.array([[0.0, 0.0], [0.1, 8.0], [0.2, 1.0], [1.0, 0.4], [1.1, 7.6], [1.2, 1.4]])
>>> rows = Data.of(Task.PROJECTION, x, [0, 0, 0, 1, 1, 1], target=TargetKind.CLASSES)
>>> learned = fit(MetricLearning(metric_form="diagonal"), rows, Context.of(0))
>>> print([f"{learned.curves['loss'][at]:.2f}" for at in (0, -1)], abs(learned.state.loadings).round(2).diagonal())
['0.76', '0.00'] [5.47 0.39]

References: Goldberger, Roweis, Hinton & Salakhutdinov (2005), NIPS 17:513; Weinberger & Saul (2009), J. Mach. Learn.
Res. 10:207; Xing, Ng, Jordan & Russell (2003), NIPS 15:521; Battiti & Brunato, The LION Way, ch. 17.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from pydantic import Field

from app.base.faults import Fault
from app.ml.contract.algorithm import (
    JSON,
    Algorithm,
    Context,
    Data,
    Fit,
    Form,
    Inputs,
    Matrix,
    Meaning,
    Params,
    Size,
    Symmetry,
    TargetKind,
    Task,
    Vector,
)
from app.ml.contract.named_numbers import every
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.clustering.pair_constraints import given_edges
from app.ml.numerics.clustering.seeding import canonical_order
from app.ml.numerics.metric_learning.class_blocks import ClassRows
from app.ml.numerics.metric_learning.factor_descent import Learned, Loss, descend
from app.ml.numerics.metric_learning.large_margin import Margins
from app.ml.numerics.metric_learning.neighbourhood_components import expected_error
from app.ml.numerics.metric_learning.pair_ratio import PairRatio
from app.ml.numerics.metric_learning.row_frame import RowFrame


class MetricLearning(Params):
    """A linear map in which plain distances are learned ones."""

    method: Literal["nca", "lmnn", "pairs"] = Field(
        "nca",
        description="Loss that the metric minimises: `nca` the expected error of a random near neighbour, `lmnn` the "
        "margin between neighbours of the own and of other classes, both from a target; `pairs` the distances of pairs "
        "that must be together, against those that cannot, from relations.",
    )
    metric_form: Literal["full", "diagonal"] = Field(
        "full",
        description="Form of the learned metric: `full` turns and weighs the columns, `diagonal` has one weight for "
        "each.",
    )
    n_components: int | None = Field(
        None,
        ge=1,
        le=1000,
        description="Number of directions to keep, of a full metric; null: all in which the rows vary.",
    )
    n_neighbors: int = Field(
        3, ge=1, le=1000, description="Number of neighbours of its own class that `lmnn` draws each row to."
    )
    push: float = Field(
        0.2,
        gt=0,
        lt=1,
        description="Share of the loss of `lmnn` that is of rows of other classes within the margin; the rest is of "
        "the distances of neighbours of one class.",
    )
    shrinkage: float = Field(
        0.1,
        ge=0,
        le=1,
        description="Share of the mean variance in the scatter of pairs that must be together, of `pairs`: 0 is the "
        "scatter of the pairs, 1 takes all columns for equally noisy and unrelated.",
    )
    max_iter: int = Field(100, ge=1, le=100_000, description="Maximum number of steps of the descent.")
    tol: float = Field(
        1e-5,
        gt=0,
        le=1,
        description="Stop when the loss falls by less than this in a step, of its size at the start where that is "
        "above 1.",
    )


class State(NamedTuple):
    mean: Vector
    """(d,) of the training rows."""
    loadings: Matrix
    """(p, d) the factor L: a row for each coordinate."""
    variance: Vector
    """(p,) of each coordinate."""


def fit(params: MetricLearning, data: Data, context: Context) -> Fit[State]:
    data = data.take(canonical_order(data.x))
    diagonal = params.metric_form == "diagonal"
    frame = RowFrame.of(data.x, data.weights, diagonal=diagonal)
    width = frame.rows.shape[1]
    directions = width if diagonal else min(width, params.n_components or width)
    learn = _of_pairs if params.method == "pairs" else _of_classes
    learned, factor = learn(params, data, frame, np.eye(directions, width), context)
    loadings = frame.loadings(factor, data.weights, turned=not diagonal)
    variance = data.weights / data.weights.sum() @ np.square((data.x - frame.mean) @ loadings.T)
    return Fit(
        State(frame.mean, loadings, variance),
        learned.converged,
        max(0, len(learned.losses) - 1),
        curves={"loss": learned.losses} if learned.losses else {},
        warnings=list(_warnings(params, data, len(factor), directions)),
    )


def _of_classes(
    params: MetricLearning, data: Data, frame: RowFrame, start: Matrix, context: Context
) -> tuple[Learned, Matrix]:
    """Together with the factor for the coordinates of the rows."""
    loss = _loss(params, data, frame)
    result = Learned(start, [], converged=True)
    if loss is not None and start.size:
        result = _descended(params, loss, start, context)
    return result, result.factor


def _loss(params: MetricLearning, data: Data, frame: RowFrame) -> Loss | None:
    """None where there are fewer than two classes."""
    if not _has_classes(data):
        return None
    rows = ClassRows.of(frame.rows, data.codes, data.weights)
    if params.method == "nca":
        return lambda factor: expected_error(rows, factor)
    return Margins.of(rows, params.n_neighbors, params.push).loss


def _of_pairs(
    params: MetricLearning, data: Data, frame: RowFrame, start: Matrix, context: Context
) -> tuple[Learned, Matrix]:
    edges = given_edges(data)
    values = edges.values * data.weights[edges.first] * data.weights[edges.second]
    diagonal = params.metric_form == "diagonal"
    pairs = PairRatio.of(frame.rows, edges._replace(values=values), params.shrinkage, diagonal=diagonal)
    start = np.eye(min(len(start), pairs.turn.shape[1]), pairs.turn.shape[1])
    result = Learned(start, [], converged=True)
    if pairs.any_apart:
        result = _descended(params, pairs.loss, start, context)
    return result, pairs.scaled(result.factor)


def _descended(params: MetricLearning, loss: Loss, start: Matrix, context: Context) -> Learned:
    return descend(
        loss,
        start,
        diagonal=params.metric_form == "diagonal",
        tol=params.tol,
        max_iter=params.max_iter,
        watch=lambda share, value: context.progress(share, loss=value),
    )


def _has_classes(data: Data) -> bool:
    return bool(data.y.size and np.ptp(data.y) > 0)


def _warnings(params: MetricLearning, data: Data, rank: int, directions: int) -> Iterator[str]:
    if params.n_components is not None and directions < params.n_components:
        yield f"There are only {directions} directions, not {params.n_components}."
    if params.method != "pairs" and not _has_classes(data):
        yield "There are fewer than two classes: the metric is the plain one."
    if params.method == "pairs" and not (given_edges(data).values < 0).any():
        yield "No pair cannot be together: the metric only draws together those that must be."
    if rank < directions:
        yield f"In {directions - rank} of {directions} directions no pair that must be together differs: left out."


def predict(params: MetricLearning, state: State, x: Matrix) -> Matrix:
    return (x - state.mean) @ state.loadings.T


def summary(params: MetricLearning, state: State) -> JSON:
    """Loadings, mean, variance of each coordinate, and the diagonal of A = LᵀL: the weight of each column alone."""
    return {
        "columns": every(state.loadings.shape[1]),
        "loadings": state.loadings.tolist(),
        "column_weights": np.square(state.loadings).sum(axis=0).tolist(),
        "variance": state.variance.tolist(),
        "mean": state.mean.tolist(),
    }


def _faults(params: MetricLearning, inputs: Inputs) -> Iterator[Fault]:
    """A target without classes is none, as the sizes are."""
    has_relations = inputs.relations is not None
    if params.method == "pairs":
        if not has_relations:
            yield Fault("/method", "pairs learns from pairs of rows: give relations in the form pairs.", "missing")
        if inputs.size.classes:
            yield Fault("/method", "pairs learns without a target: leave it out, or take nca or lmnn.", "not_taken")
    else:
        if not inputs.size.classes:
            yield Fault("/method", f"{params.method} learns from classes: give a target, or take pairs.", "missing")
        if has_relations:
            yield Fault(
                "/method", f"{params.method} learns from a target, not from relations: take pairs.", "not_taken"
            )
    if params.metric_form == "diagonal" and params.n_components is not None:
        yield Fault("/n_components", "A diagonal metric keeps every column: leave n_components out.")


def _seconds(params: MetricLearning, size: Size) -> float:
    if params.method == "pairs":
        return 1e-3 + size.cells * (1e-8 + 1e-9 * size.columns)
    steps = min(params.max_iter, 40)
    return steps * size.rows**2 * (6e-9 + 1.2e-10 * size.columns)


def to_tensor(params: MetricLearning, state: State, x: Tensor) -> Tensor:
    return (x - state.mean) @ state.loadings.T


ALGORITHM = Algorithm(
    tasks={Task.PROJECTION},
    targets={Task.PROJECTION: TargetKind.CLASSES},
    target_optional=True,
    params=MetricLearning,
    state=State,
    fit=fit,
    predict=predict,
    graph=to_tensor,
    relations={Form.PAIRS: {Meaning.CONSTRAINT}},
    faults=_faults,
    seconds=_seconds,
    summary=summary,
    breaks={
        Symmetry.SCALE: "the descent begins at Euclidean distances, in the units of the columns",
        Symmetry.WEIGHTS: "a row given twice is its own nearest neighbour",
    },
)
