"""Three ways downhill for convex functions of a matrix of numbers: by fixed steps, by accelerated ones, by feel."""

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from app.ml.contract.algorithm import Matrix
from app.ml.numerics.linear_algebra.solve import EPS

Watch: TypeAlias = Callable[[float], None]
"""Receives the value after every iteration."""
RUNAWAY = 1e6
"""A value this many times the first has left for good."""
MIN_STEP = 1e-8
"""Steps of a search: the square of less is lost in rounding."""


class Function(Protocol):
    def value(self, point: Matrix) -> float: ...

    def with_slope(self, point: Matrix) -> tuple[float, Matrix]: ...


class Bottom(NamedTuple):
    """The lowest point met."""

    point: Matrix
    converged: bool
    iterations: int
    diverged: bool = False


def flat(value: float, slope: Matrix, tol: float) -> bool:
    """No slope exceeds `tol` times the value, or one rounding of 1."""
    return bool(np.abs(slope).max() <= max(tol * value, EPS))


def steepest(function: Function, start: Matrix, *, rate: float, tol: float, max_iter: int, watch: Watch) -> Bottom:
    """Gradient descent as it stands in the books: point ← point − rate·slope (LION 3.1)."""
    point = best = start
    first = lowest = np.inf
    for iteration in range(max_iter + 1):
        value, slope = function.with_slope(point)
        if iteration == 0:
            first = value
        if not value <= RUNAWAY * max(first, EPS):  # NaN is not
            return Bottom(best, converged=False, iterations=iteration, diverged=True)
        if value < lowest:
            lowest, best = value, point
        if flat(value, slope, tol) or iteration == max_iter:
            return Bottom(best if value > lowest else point, flat(value, slope, tol), iteration)
        point = point - rate * slope
        watch(value)
    raise AssertionError("the last iteration returns")


def accelerated(function: Function, start: Matrix, tol: float, max_iter: int, watch: Watch) -> Bottom:
    """Nesterov's gradient method. The rate is found by doubling the curvature until a step keeps its promise; momentum
    starts anew where it points uphill.

    References: Beck & Teboulle (2009), SIAM J. Imaging Sci. 2:183; O'Donoghue & Candès (2015), Found. Comput. Math.
    15:715.
    """
    point = ahead = start
    curvature, momentum = 1.0, 1.0
    for iteration in range(max_iter):
        value, slope = function.with_slope(ahead)
        if flat(value, slope, tol):
            return Bottom(ahead, converged=True, iterations=iteration)
        square = float((slope * slope).sum())
        before, point = point, ahead - slope / curvature
        while not function.value(point) <= value - square / (2 * curvature) + 4 * EPS * abs(value):
            curvature *= 2
            point = ahead - slope / curvature
            if curvature > 1 / EPS**2:
                return Bottom(ahead, converged=False, iterations=iteration)
        move = point - before
        if (slope * move).sum() > 0:
            momentum = 1.0
        before_that, momentum = momentum, (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = point + (before_that - 1) / momentum * move
        curvature *= 0.95  # of where we are now, not of the steepest place so far
        watch(value)
    value, slope = function.with_slope(point)
    return Bottom(point, flat(value, slope, tol), max_iter)


def by_feel(function: Function, start: Matrix, max_iter: int, watch: Watch) -> Bottom:
    """Local search without slopes: feel the ground on both sides along each coordinate, go where it is lower.

    The step doubles after a round that helped and is halved after one that did not; converged when it is shorter than
    rounding lets feel.

    Reference: Kolda, Lewis & Torczon (2003), SIAM Rev. 45:385.
    """
    point, step = start.copy(), 0.5
    lowest = function.value(point)
    for iteration in range(max_iter):
        if step < MIN_STEP:
            return Bottom(point, converged=True, iterations=iteration)
        before = lowest
        for place in np.ndindex(*point.shape):
            lowest = _feel(function, point, place, step, lowest)
        step = 2 * step if lowest < before else step / 2
        watch(lowest)
    return Bottom(point, converged=False, iterations=max_iter)


def _feel(function: Function, point: Matrix, place: tuple[int, ...], step: float, lowest: float) -> float:
    """The lowest value after a look at both sides; the point moves there."""
    here = point[place]
    for there in (here + step, here - step):
        point[place] = there
        if (value := function.value(point)) < lowest:
            return value
    point[place] = here
    return lowest
