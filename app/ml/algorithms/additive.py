r"""Additive model: the sum of one curve for each column, smooth splines unless another learner is named.

    f(x) = ȳ + Σⱼ hⱼ(xⱼ)

By default every hⱼ is a straight line and a penalised cubic spline. All are fitted together by penalised least
squares, and restricted maximum likelihood finds how smooth each is (`app.ml.numerics.linear_models.splines`): a column
without influence gets a curve that is about nil. `python -m tests.benchmarks.quality additive` compares it with ridge
regression of B-splines. It is behind on the table of many categories alone (RMSE 1.676 against 1.620), because
preparation keeps 64 of 120 levels: with `max_levels` 256 its RMSE is 1.606.

With backfitting any learner of one column makes the curves: hⱼ is fitted to y − ȳ − Σ_{k≠j} h_k, in turn, until
nothing moves. A component that raises the squared error of the sum is not taken, so the error never goes up from sweep
to sweep. With linear components it ends at the least-squares plane.

Stagewise, what is there stays: each step fits a component b(xⱼ) to what is left by every column, and adds the one that,
times β, lowers the squared error most,

    β = Σ v·r·b / Σ v·b²      rows of weight v with the rest r,      f ← f + learning_rate·β·b,

so that columns that do not help are left out, and the fewer steps the calmer the curves (L2 boosting).

In short: The prediction is the mean plus one smooth curve for each column. All curves are fitted together, each as bent
as the rows demand. The curves can be looked at one by one.

Use when: each input has its own effect, perhaps bent, and effects add up; the report has the curve of each by itself.
Interactions are beyond it.

For linear components the fit is ordinary least squares:

>>> from app.ml.catalogue.algorithm_files import find
>>> from app.ml.catalogue.nested import context
>>> rng = np.random.Generator(np.random.PCG64(0))
>>> x = rng.normal(size=(50, 3)) @ np.array([[1.0, 0.5, 0], [0, 1, 0.3], [0, 0, 1]])
>>> y = x @ [1.0, -2.0, 0.5] + rng.normal(size=50)
>>> plane = np.column_stack([np.ones(50), x])
>>> best = np.sum((y - plane @ np.linalg.lstsq(plane, y, rcond=None)[0]) ** 2)
>>> params = find("additive").algorithm.params(fit="backfitting", estimator={"name": "linear"}, max_iter=200, tol=1e-15)
>>> found = fit(params, Data.of(Task.REGRESSION, x, y), context(0))
>>> bool(abs(found.curves["sse"][-1] / best - 1) < 1e-10)
True

References: Friedman & Stuetzle (1981), J. Am. Stat. Assoc. 76:817; Hastie & Tibshirani (1990), Generalized Additive
Models; Wood & Fasiolo (2017), Biometrics 73:1071 (smoothness); Bühlmann & Yu (2003), J. Am. Stat. Assoc. 98:324
(stagewise); Battiti & Brunato, The LION Way, ch. 11.
"""

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
    SECONDS_PER_CELL,
    Algorithm,
    ColumnUnits,
    Context,
    Data,
    Fit,
    FittedLearner,
    Inputs,
    Labels,
    Learner,
    Matrix,
    Member,
    NestedFit,
    Params,
    Size,
    Task,
    Vector,
    learner,
)
from app.ml.numerics.curve_points import curve_points
from app.ml.numerics.linear_models.coefficient_errors import as_json
from app.ml.numerics.linear_models.column_sums import AdditiveScores
from app.ml.numerics.linear_models.splines import NO_CURVES, Curves, curve_columns, fit_curves
from app.ml.numerics.tensor_graphs.curve_tensors import additive_tensor

MOST_COLUMNS = 4000
"""The time of splines grows as the cube of the columns."""


class Additive(Params):
    fit: Literal["splines", "backfitting", "stagewise"] = Field(
        "splines",
        description="Fit of the curves. `splines`: penalised splines, all at once, without "
        "`estimator`; `backfitting`: every component again in turn; `stagewise`: add the component that helps most and "
        "keep the others.",
    )
    estimator: Learner = learner(
        "Learner that is trained for each column, with backfitting or stagewise.", name="decision_tree", max_depth=3
    )
    max_iter: int = Field(
        20,
        ge=1,
        le=1000,
        description="Maximum number of sweeps over the columns (backfitting) or of steps (stagewise).",
    )
    learning_rate: float = Field(
        1.0, gt=0, le=1, description="Shrinkage: the factor by which each stagewise component is multiplied."
    )
    tol: float = Field(
        1e-6,
        gt=0,
        le=1,
        description="Stop when a sweep, or a stagewise step, lowers the squared error by less than this share.",
    )


class State(NamedTuple):
    mean: float
    members: tuple[FittedLearner | None, ...]
    """(d,) of the columns; None where a component never helped. Stagewise: (m,) of the steps."""
    offsets: Vector
    """(d,) the mean of each component on the training rows, which is taken off; or (m,)."""
    columns: Labels = np.zeros(0, np.intp)
    """Stagewise: (m,) the column of each step."""
    factors: Vector = np.zeros(0)
    """Stagewise: (m,) by what each is multiplied, learning_rate·β."""
    curves: Curves = NO_CURVES
    """Curves of splines."""
    points: Matrix = np.zeros((0, 0))
    """(d, m) values of the columns at which the report shows their curves; NaN behind the last."""
    categorical: NDArray[np.bool_] = np.zeros(0, np.bool_)
    """(d,) true for categorical columns."""

    def learners_with_levels(self, levels: Labels) -> Iterator[tuple[FittedLearner | None, Labels]]:
        """Each member with the number of categories (1,) of the column that it sees, of those (d,) of the matrix."""
        return ((member, levels[[j]]) for member, j in zip(self.members, self.seen, strict=True))

    @property
    def seen(self) -> list[int]:
        """The column of each member."""
        return self.columns.tolist() if len(self.columns) else list(range(len(self.members)))


def fit(params: Additive, data: Data, context: Context) -> Fit[State]:
    mean = float(np.average(data.y, weights=data.weights))
    if params.fit == "splines":
        smoothed = _smooth(data, mean)
    else:
        smoothed = (_backfitted if params.fit == "backfitting" else _stagewise)(params, data, mean, context)
    return replace(smoothed, state=smoothed.state._replace(points=curve_points(data.x), categorical=data.levels > 0))


def _smooth(data: Data, mean: float) -> Fit[State]:
    fitted = fit_curves(data.x, data.y - mean, data.weights)
    state = State(mean, (), np.zeros(0), curves=fitted.curves)
    return Fit(state, converged=fitted.converged, iterations=fitted.steps)


def _backfitted(params: Additive, data: Data, mean: float, context: Context) -> Fit[State]:
    d = data.x.shape[1]
    left, curves = data.y - mean, np.zeros((d, len(data.x)))
    members: list[FittedLearner | None] = [None] * d
    offsets, errors = np.zeros(d), [_sse(data, left)]
    for sweep in range(params.max_iter):
        for j in range(d):
            without = left + curves[j]
            column = _column(data, without, j)
            member = context.fit(params.estimator, column)
            curve, offset = _centred(column, member)
            if _sse(data, without - curve) < _sse(data, left):
                members[j], offsets[j], curves[j], left = member, offset, curve, without - curve
        errors.append(_sse(data, left))
        context.progress((sweep + 1) / params.max_iter, sse=errors[-1])
        if errors[-2] - errors[-1] <= params.tol * errors[-2]:
            return Fit(State(mean, tuple(members), offsets), iterations=sweep + 1, curves={"sse": errors})
    return Fit(
        State(mean, tuple(members), offsets), converged=False, iterations=params.max_iter, curves={"sse": errors}
    )


def _stagewise(params: Additive, data: Data, mean: float, context: Context) -> Fit[State]:
    left, taken = data.y - mean, list[tuple[FittedLearner, float, int, float]]()
    errors = [_sse(data, left)]
    for step in range(params.max_iter):
        columns = [partial(_column, data, left, j) for j in range(data.x.shape[1])]
        best, least = None, errors[-1] * (1 - params.tol)
        members = context.fit_all([NestedFit(params.estimator, column) for column in columns])
        for j, (member, column) in enumerate(zip(members, columns, strict=True)):
            curve, offset = _centred(column(), member)
            factor = params.learning_rate * float(data.weights @ (left * curve)) / (_sse(data, curve) or 1.0)
            if (error := _sse(data, left - factor * curve)) < least:
                best, least = (member, offset, j, factor, curve), error
        if best is None:
            return Fit(_state(mean, taken), iterations=step, curves={"sse": errors})
        taken.append(best[:4])
        left = left - best[3] * best[4]
        errors.append(least)
        context.progress((step + 1) / params.max_iter, sse=least)
    return Fit(_state(mean, taken), converged=False, iterations=params.max_iter, curves={"sse": errors})


def _state(mean: float, taken: list[tuple[FittedLearner, float, int, float]]) -> State:
    members, offsets, columns, factors = zip(*taken, strict=True) if taken else ((),) * 4
    return State(
        mean, members, np.array(offsets, np.float64), np.array(columns, np.intp), np.array(factors, np.float64)
    )


def _column(data: Data, residuals: Vector, j: int) -> Data:
    """One column of the rows, and the target that it explains."""
    return replace(data.columns(np.array([j])), y=_frozen(residuals), targets=_frozen(residuals[:, None]))


def _centred(column: Data, member: FittedLearner) -> tuple[Vector, float]:
    """Values of a component on the training rows, of mean zero; and the mean."""
    curve = member.predict(column.x)
    offset = float(np.average(curve, weights=column.weights))
    return curve - offset, offset


def predict(params: Additive, state: State, x: Matrix) -> Vector:
    predicted: Vector = state.mean + components(state, x).sum(axis=1)
    return predicted


def components(state: State, x: Matrix) -> Matrix:
    """(n, d) what each column adds."""
    if state.curves.slopes.size:
        return state.curves.of(x)
    added = np.zeros(x.shape)
    steps = len(state.columns) > 0
    factors = state.factors.tolist() if steps else [1.0] * len(state.members)
    for member, offset, j, factor in zip(state.members, state.offsets.tolist(), state.seen, factors, strict=True):
        if member is not None:
            added[:, j] += factor * (member.predict(np.ascontiguousarray(x[:, [j]])) - offset)
    return added


def explain(params: Additive, state: State, x: Matrix) -> list[JSON]:
    """For each row what every column adds to the mean."""
    return [
        {"mean": state.mean, "adds": [{"column": j, "value": value} for j, value in enumerate(row)]}
        for row in components(state, x).tolist()
    ]


def summary(params: Additive, state: State, units: ColumnUnits | None = None) -> JSON:
    """The mean, and the curve of every column over its own values."""
    points = state.points.T
    there = np.where(np.isnan(points), points[:1], points)
    added = components(state, np.ascontiguousarray(there)).T
    with np.errstate(over="ignore"):  # what is not finite is null
        values = (points if units is None else units.values(points)).T
    curves = [
        {"column": j} | _over(state, j, values[j, is_present]) | {"contributions": as_json(added[j, is_present])}
        for j, is_present in enumerate(~np.isnan(state.points))
    ]
    return {"mean": state.mean, "curves": curves}


def _over(state: State, column: int, values: Vector) -> dict[str, JSON]:
    """Domain of a curve: values, with how bent a spline is, or the codes of categories."""
    if state.categorical[column]:
        return {"categories": values.astype(np.intp).tolist()}
    degrees = state.curves.degrees
    return {"values": as_json(values)} | ({"degrees_of_freedom": float(degrees[column])} if degrees.size else {})


def _fits(params: Additive, size: Size) -> tuple[float, Size]:
    """Half of the sweeps are enough, as a rule; of steps all are taken."""
    rounds = params.max_iter / 2 if params.fit == "backfitting" else params.max_iter
    return rounds * size.columns, size._replace(columns=1)


def _members(params: Additive, task: Task) -> list[Member]:
    return [] if params.fit == "splines" else [Member("/estimator", params.estimator, task, partial(_fits, params))]


def _faults(params: Additive, inputs: Inputs) -> Iterator[Fault]:
    columns = inputs.size.columns
    if params.fit == "splines" and columns > MOST_COLUMNS:
        detail = f"Splines take at most {MOST_COLUMNS} columns, and this table has {columns:.0f} with all indicators: "
        yield Fault("/fit", detail + "use `stagewise`, fewer columns, or ridge.", "too_wide")


def _seconds(params: Additive, size: Size) -> float:
    """The ridge regression of lines, indicators and curves, in some 40 steps; in 3 where nothing is curved."""
    if params.fit != "splines":
        return SECONDS_PER_CELL * size.cells
    curved = curve_columns(size.rows, size.columns - size.indicators)
    width, steps = size.columns + curved, 40 if curved else 3
    return 5e-10 * size.rows * width**2 + steps * 3e-10 * width**3 + 1e-6 * size.cells


def _sse(data: Data, left: Vector) -> float:
    return float(data.weights @ left**2)


def _frozen(array: Vector) -> Vector:
    array.setflags(write=False)
    return array


ALGORITHM = Algorithm(
    tasks={Task.REGRESSION},
    params=Additive,
    state=State,
    fit=fit,
    predict=predict,
    graph=additive_tensor,
    explain=explain,
    queries={
        "contributions": lambda p, state: AdditiveScores(
            state.mean, partial(predict, p, state), partial(components, state)
        )
    },
    summary=summary,
    in_units=summary,
    members=_members,
    faults=_faults,
    seconds=_seconds,
)
