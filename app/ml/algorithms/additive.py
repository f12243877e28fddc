r"""Additive model: the sum of one curve for each column, each curve fitted to what the others leave.

    f(x) = ȳ + Σⱼ hⱼ(xⱼ),   hⱼ fitted to y − ȳ − Σ_{k≠j} h_k by backfitting, in turn, until nothing moves.

Every hⱼ has mean zero on the training rows. A component that raises the squared error of the sum is not taken, so
the error never goes up from sweep to sweep. With linear components it ends at the least-squares plane.

In short: The answer is the mean plus one curve for each column. Each curve is fitted to what all others leave, in
turn, until nothing moves. The curves can be looked at one by one.

Use when: each input has its own effect, perhaps bent, and effects add up; each curve can be looked at by itself, by
a sweep over its column. Interactions are beyond it.

For linear components the fit is ordinary least squares:

>>> from app.ml.catalogue import find
>>> from app.ml.learners import context
>>> rng = np.random.Generator(np.random.PCG64(0))
>>> x = rng.normal(size=(50, 3)) @ np.array([[1.0, 0.5, 0], [0, 1, 0.3], [0, 0, 1]])
>>> y = x @ [1.0, -2.0, 0.5] + rng.normal(size=50)
>>> plane = np.column_stack([np.ones(50), x])
>>> best = np.sum((y - plane @ np.linalg.lstsq(plane, y, rcond=None)[0]) ** 2)
>>> params = find("additive").algorithm.params(base={"name": "linear"}, sweeps=200, tol=1e-15)
>>> found = fit(params, Data.of(Task.REGRESSION, x, y), context(0))
>>> bool(abs(found.curves["sse"][-1] / best - 1) < 1e-10)
True

References: Friedman & Stuetzle (1981), J. Am. Stat. Assoc. 76:817; Hastie & Tibshirani (1990), Generalized Additive
Models; Battiti & Brunato, The LION Way, ch. 11.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from pydantic import Field

from app.ml.contract import (
    JSON,
    Algorithm,
    Context,
    Data,
    Fit,
    Learned,
    Learner,
    Matrix,
    Member,
    Params,
    Symmetry,
    Task,
    Vector,
    learner,
)


class Additive(Params):
    base: Learner = learner("The learner of one column.", name="decision_tree", max_depth=3)
    sweeps: int = Field(20, ge=1, le=1000, description="Times that every component is fitted, at most.")
    tol: float = Field(
        1e-6, gt=0, le=1, description="Stop when a sweep lowers the squared error by less than this share."
    )


class State(NamedTuple):
    mean: float
    members: tuple[Learned | None, ...]
    """(d,) of the columns; None where a component never helped."""
    offsets: Vector
    """(d,) the mean of each component on the training rows, which is taken off."""


def fit(params: Additive, data: Data, context: Context) -> Fit[State]:
    d, mean = data.x.shape[1], float(np.average(data.y, weights=data.weights))
    left, curves = data.y - mean, np.zeros((d, len(data.x)))
    members: list[Learned | None] = [None] * d
    offsets, errors = np.zeros(d), [_sse(data, left)]
    for sweep in range(params.sweeps):
        for j in range(d):
            without = left + curves[j]
            column = data.columns(np.array([j]))
            member = context.fit(params.base, replace(column, y=_frozen(without), targets=_frozen(without[:, None])))
            curve = member.predict(column.x)
            offset = float(np.average(curve, weights=data.weights))
            curve = curve - offset
            if _sse(data, without - curve) < _sse(data, left):
                members[j], offsets[j], curves[j], left = member, offset, curve, without - curve
        errors.append(_sse(data, left))
        context.progress((sweep + 1) / params.sweeps, sse=errors[-1])
        if errors[-2] - errors[-1] <= params.tol * errors[-2]:
            return Fit(State(mean, tuple(members), offsets), iterations=sweep + 1, curves={"sse": errors})
    return Fit(State(mean, tuple(members), offsets), converged=False, iterations=params.sweeps, curves={"sse": errors})


def predict(params: Additive, state: State, x: Matrix) -> Vector:
    answer: Vector = state.mean + components(state, x).sum(axis=1)
    return answer


def components(state: State, x: Matrix) -> Matrix:
    """(n, d) what each column adds."""
    added = np.zeros(x.shape)
    for j, (member, offset) in enumerate(zip(state.members, state.offsets.tolist(), strict=True)):
        if member is not None:
            added[:, j] = member.predict(np.ascontiguousarray(x[:, [j]])) - offset
    return added


def explain(params: Additive, state: State, x: Matrix) -> list[JSON]:
    """For each row what every column adds to the mean."""
    return [
        {
            "mean": state.mean,
            "adds": [{"column": j, "value": value} for j, value in enumerate(row)],
        }
        for row in components(state, x).tolist()
    ]


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
    explain=explain,
    members=lambda params, task: [
        Member("/base", params.base, task, lambda size: (params.sweeps * size.columns / 2, size._replace(columns=1)))
    ],
    breaks={Symmetry.COLUMN_ORDER: "components are fitted in turn, and stop before the last digit"},
)
