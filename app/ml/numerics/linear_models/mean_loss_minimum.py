"""The minimum of a mean loss over rows: by a fixed rate, by steps that learn curvatures, by trial steps, or from the
inside.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.linear_models.interior_point import proven
from app.ml.numerics.linear_models.losses import Loss, MeanLoss, MeanSquare
from app.ml.numerics.optimise.gradient_descent import Bottom, Function, accelerated, by_feel, steepest
from app.ml.numerics.optimise.newton import lbfgs

ROWS_PER_COLUMN = 4
"""Rows for each column from which on sums of products take the place of the rows on most of the way."""


class MeanLossSolver(Protocol):
    """Parameters of the minimisation, as `linear_sgd` has them."""

    @property
    def solver(self) -> str: ...

    @property
    def learning_rate(self) -> float | None: ...

    @property
    def tol(self) -> float: ...

    @property
    def max_iter(self) -> int: ...


def mean_loss_minimum(function: MeanLoss, start: Matrix, params: MeanLossSolver, watch: Callable[..., None]) -> Bottom:
    """start: (d + 1, s), which the interior point method does not need. Losses with a corner may end beside it."""
    if params.solver == "search":
        bottom = by_feel(function, start, params.max_iter, watch)
        return bottom._replace(converged=bottom.converged and function.kind.smooth)
    if params.learning_rate is not None:
        return steepest(
            function, start, rate=params.learning_rate, tol=params.tol, max_iter=params.max_iter, watch=watch
        )
    if not function.kind.smooth:
        return proven(function, params.tol, params.max_iter, watch)
    begun = Bottom(start, converged=False, iterations=0)
    if function.kind is Loss.SQUARED and isinstance(function.x, np.ndarray):
        n, columns = function.x.shape
        if n >= ROWS_PER_COLUMN * columns:
            sums = MeanSquare.of(function)
            begun = _by_curvature(sums, begun, params, watch)
            if not begun.converged and begun.iterations < params.max_iter:
                begun = begun._replace(point=sums.lowest_from(begun.point))
    bottom = _by_curvature(function, begun, params, watch)
    if bottom.converged or bottom.iterations >= params.max_iter:
        return bottom
    last = accelerated(function, bottom.point, params.tol, params.max_iter - bottom.iterations, watch)
    return last._replace(iterations=bottom.iterations + last.iterations)


def _by_curvature(function: Function, begun: Bottom, params: MeanLossSolver, watch: Callable[..., None]) -> Bottom:
    """By limited-memory BFGS, whose line search rounding may end early."""
    start = begun.point

    def value_and_slope(point: Vector) -> tuple[float, Vector]:
        value, slope = function.with_slope(point.reshape(start.shape))
        return value, slope.ravel()

    def seen(_point: Vector, value: float) -> bool:
        watch(value)
        return False

    left = max(params.max_iter - begun.iterations, 1)
    descent = lbfgs(value_and_slope, start.ravel(), tol=params.tol, max_iter=left, watch=seen)
    point = descent.x.reshape(start.shape) if descent.iterations else start
    return Bottom(point, descent.converged, begun.iterations + descent.iterations)
