"""Minimising smooth functions of many numbers, of losses: functions that are never below zero.

The tolerance is relative: no entry of the gradient may exceed `tol` times the value, so that a loss that becomes
tiny is still brought to its minimum; slopes below one rounding of 1 count as none.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
import scipy

from app.ml.contract import Matrix, Vector
from app.ml.numerics.linalg import EPS, solve_positive

Function: TypeAlias = Callable[[Vector], tuple[float, Vector]]
"""Value and gradient, (m,), at a point (m,)."""
Watch: TypeAlias = Callable[[Vector, float], bool]
"""Called after every iteration with the point and its value; True stops."""

SUFFICIENT = 1e-4
"""Share of the decrease promised by the slope that a step has to keep (Armijo)."""


class Minimum(NamedTuple):
    x: Vector
    converged: bool
    iterations: int


def newton(
    function: Function, hessian: Callable[[Vector], Matrix], start: Vector, *, tol: float, max_iter: int, watch: Watch
) -> Minimum:
    """Newton's method for a strictly convex function, each step halved until the value falls.

    Equivalent to scipy's `trust-exact` in the answer; fewer evaluations where the Hessian is cheap.
    """
    x = start
    value, gradient = function(x)
    for iteration in range(max_iter):
        if _flat(value, gradient, tol):
            return Minimum(x, converged=True, iterations=iteration)
        direction = -solve_positive(hessian(x), gradient)
        found = _backtrack(function, x, value, direction, float(gradient @ direction))
        if found is None:
            return Minimum(x, converged=False, iterations=iteration)
        x, value, gradient = found
        if watch(x, value):
            return Minimum(x, _flat(value, gradient, tol), iteration + 1)
    return Minimum(x, _flat(value, gradient, tol), max_iter)


def _flat(value: float, gradient: Vector, tol: float) -> bool:
    return bool(np.abs(gradient).max() <= max(tol * value, EPS))


def _backtrack(
    function: Function, x: Vector, value: float, direction: Vector, slope: float
) -> tuple[Vector, float, Vector] | None:
    """None when rounding hides any decrease."""
    step = 1.0
    while step > EPS:
        trial = x + step * direction
        found, gradient = function(trial)
        if found <= value + SUFFICIENT * step * slope + 4 * EPS * abs(value):
            return trial, found, gradient
        step /= 2
    return None


def lbfgs(function: Function, start: Vector, *, tol: float, max_iter: int, watch: Watch) -> Minimum:
    """Limited-memory BFGS (Nocedal 1980): a few vectors instead of the Hessian, for many unknowns."""
    latest = function(start)
    if _flat(*latest, tol):
        return Minimum(start, converged=True, iterations=0)

    def remembered(x: Vector) -> tuple[float, Vector]:
        nonlocal latest
        latest = function(x)
        return latest

    def after(intermediate_result: scipy.optimize.OptimizeResult) -> None:
        # The point that ends an iteration is the one evaluated last.
        if watch(intermediate_result.x.copy(), float(intermediate_result.fun)) or _flat(*latest, tol):
            raise StopIteration

    options = {"maxiter": max_iter, "maxfun": 20 * max_iter, "maxcor": 20, "ftol": 0.0, "gtol": 0.0}
    found = scipy.optimize.minimize(remembered, start, jac=True, method="L-BFGS-B", callback=after, options=options)
    return Minimum(found.x, _flat(found.fun, found.jac, tol), int(found.nit))
