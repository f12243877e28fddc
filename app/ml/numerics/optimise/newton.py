"""Minimising smooth functions of many numbers, of losses: functions that are never below zero.

The tolerance is relative: no entry of the gradient may exceed `tol` times the value, so that a loss that becomes
tiny is still brought to its minimum; slopes below one rounding of 1 count as none.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.linear_algebra.solve import EPS, positive_solver

Function: TypeAlias = Callable[[Vector], tuple[float, Vector]]
"""Value and gradient, (m,), at a point (m,)."""
Watch: TypeAlias = Callable[[Vector, float], bool]
"""Called after every iteration with the point and its value; True stops."""

Pair: TypeAlias = tuple[Vector, Vector]
"""A step, and how it changed the gradient."""

Solve: TypeAlias = Callable[[Vector], Vector]
"""The inverse of a positive definite matrix, times a vector."""

MEMORY = 20
"""Steps that are remembered."""
SLOW = 0.1
"""Largest share of the gradient that a step may leave for its Hessian to be used again."""
SUFFICIENT = 1e-4
"""Share of the decrease promised by the slope that a step has to keep (Armijo)."""


class Minimum(NamedTuple):
    x: Vector
    converged: bool
    iterations: int


def newton(
    function: Function,
    hessian: Callable[[Vector], Matrix],
    start: Vector,
    *,
    tol: float,
    max_iter: int,
    watch: Watch,
    slow: float = SLOW,
) -> Minimum:
    """Newton's method for a strictly convex function, each step halved until the value falls.

    A Hessian serves as long as steps bring the gradient to this share of it, corrected by what each step shows of it
    (the BFGS formula). Equivalent to scipy's `trust-exact` in its solution.
    """

    def solver(x: Vector) -> Solve:
        return positive_solver(hessian(x))

    return _descend(function, solver, start, slow=slow, tol=tol, max_iter=max_iter, watch=watch)


def quasi_newton(
    function: Function, solve: Solve, start: Vector, *, tol: float, max_iter: int, watch: Watch
) -> Minimum:
    """Limited-memory BFGS for a strictly convex function, on top of `solve`: roughly the inverse Hessian."""
    return _descend(function, lambda _: solve, start, slow=np.inf, tol=tol, max_iter=max_iter, watch=watch)


def _descend(
    function: Function,
    solver: Callable[[Vector], Solve],
    start: Vector,
    *,
    slow: float,
    tol: float,
    max_iter: int,
    watch: Watch,
) -> Minimum:
    x, solve, pairs = start, None, list[Pair]()
    value, gradient = function(x)
    for iteration in range(max_iter):
        if _flat(value, gradient, tol):
            return Minimum(x, converged=True, iterations=iteration)
        solve = solve or solver(x)
        direction = -_inverse_times(gradient, solve, pairs)
        step_found = _backtrack(function, x, value, direction, float(gradient @ direction))
        if step_found is None:
            return Minimum(x, converged=False, iterations=iteration)
        step, change = step_found[0] - x, step_found[2] - gradient
        if step @ change > 0:  # else rounding has the better of both
            pairs = [*pairs, (step, change)][-MEMORY:]
        if np.abs(step_found[2]).max() > slow * np.abs(gradient).max():
            solve, pairs = None, []
        x, value, gradient = step_found
        if watch(x, value):
            return Minimum(x, _flat(value, gradient, tol), iteration + 1)
    return Minimum(x, _flat(value, gradient, tol), max_iter)


def _inverse_times(gradient: Vector, solve: Solve, pairs: Sequence[Pair]) -> Vector:
    """The inverse Hessian, known before these steps, times the gradient after them (Nocedal 1980)."""
    shares, q = [], gradient
    for step, change in reversed(pairs):
        shares.append((step @ q) / (step @ change))
        q = q - shares[-1] * change
    q = solve(q)
    for (step, change), share in zip(pairs, reversed(shares), strict=True):
        q = q + (share - (change @ q) / (step @ change)) * step
    return q


def _flat(value: float, gradient: Vector, tol: float) -> bool:
    return bool(np.abs(gradient).max() <= max(tol * value, EPS))


def _backtrack(
    function: Function, x: Vector, value: float, direction: Vector, slope: float
) -> tuple[Vector, float, Vector] | None:
    """None when rounding hides any decrease."""
    step = 1.0
    while step > EPS:
        trial = x + step * direction
        trial_value, gradient = function(trial)
        if trial_value <= value + SUFFICIENT * step * slope + 4 * EPS * abs(value):
            return trial, trial_value, gradient
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
    result = scipy.optimize.minimize(remembered, start, jac=True, method="L-BFGS-B", callback=after, options=options)
    return Minimum(result.x, _flat(result.fun, result.jac, tol), int(result.nit))
