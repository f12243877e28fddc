"""Penalised splines of columns as tensors."""

from typing import Protocol

import numpy as np

from app.ml.contract.algorithm import FittedLearner, Vector
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.linear_models.splines import Curves, natural_spline
from app.ml.numerics.tensor_graphs.class_tensors import sum_tensors
from app.ml.numerics.tensor_graphs.learner_tensors import learner_tensor


def curve_tensor(curves: Curves, x: Tensor) -> Tensor:
    """(n, 1) the sum of what all columns add."""
    parts = [(x - curves.centres) @ curves.slopes]
    for column in np.flatnonzero(~np.isnan(curves.knots[:, :1]).all(axis=1)).tolist():
        knots = curves.knots[column][~np.isnan(curves.knots[column])]
        heights = curves.heights[column, : knots.size]
        if heights.any():
            parts.append(_spline_tensor(x[[column]], knots, heights))
    return sum_tensors(parts)


def _spline_tensor(column: Tensor, knots: Vector, heights: Vector) -> Tensor:
    spline = natural_spline(knots, heights)
    within = column.combine("Max", float(knots[0])).combine("Min", float(knots[-1]))
    place = (within >= knots[None]).to_numbers().reduce("ReduceSum") - 1.0
    j = place.combine("Max", 0.0).combine("Min", float(knots.size - 2)).to_integers()
    step = j.among(spline.steps)
    upper = (within - j.among(knots)) / step
    lower = 1.0 - upper
    value = lower * j.among(heights) + upper * j.among(heights[1:])
    cubes = (lower * lower * lower - lower) * j.among(spline.bends)
    cubes = cubes + (upper * upper * upper - upper) * j.among(spline.bends[1:])
    beyond = column - within
    outside = (beyond * spline.slope_left).where(beyond < 0.0, beyond * spline.slope_right)
    return value + cubes * (step * step) / 6.0 + outside


class AdditiveState(Protocol):
    @property
    def mean(self) -> float: ...
    @property
    def members(self) -> tuple[FittedLearner | None, ...]: ...
    @property
    def offsets(self) -> Vector: ...
    @property
    def factors(self) -> Vector: ...
    @property
    def curves(self) -> Curves: ...
    @property
    def seen(self) -> list[int]: ...


def additive_tensor(_: object, state: AdditiveState, x: Tensor) -> Tensor:
    """(n, 1) predictions of an additive model: its mean, and what each column adds."""
    if state.curves.slopes.size:
        return state.mean + curve_tensor(state.curves, x)
    factors = state.factors.tolist() or [1.0] * len(state.members)
    parts = zip(state.members, state.offsets.tolist(), state.seen, factors, strict=True)
    added = [f * (learner_tensor(m, x[[j]]) - offset) for m, offset, j, f in parts if m is not None]
    return sum_tensors([x.repeated(np.array([state.mean])), *added])
