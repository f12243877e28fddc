"""Ways downhill for a smooth function of many numbers, each with all rows at once.

Gradient descent with a fixed rate or the bold driver's; along lines of steepest descent, of conjugate gradients, or of
one-step secants. A rate that is too large is detected, and the result is the lowest point met.

References: Polak & Ribière (1969), Rev. Fr. Inform. Rech. Opér. 16:35; Vogl et al. (1988), Biol. Cybern. 59:257;
Battiti (1992), Neural Computation 4:141; Nocedal & Wright (2006), Numerical Optimization, ch. 3 and 5;
Battiti & Brunato, The LION Way, section 9.2.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from app.ml.contract.algorithm import Vector
from app.ml.numerics.linear_algebra.solve import EPS
from app.ml.numerics.optimise.gradient_descent import RUNAWAY, flat
from app.ml.numerics.optimise.newton import Function, Watch

SUFFICIENT = 1e-4
"""Share of the decrease that the slope promises, which a step has to keep (Armijo)."""
MAX_STEP_GROWTH = 10.0
"""Most by which a step is lengthened at once."""
TRIALS = 20
"""Most steps that are tried along a line."""


class Descent(NamedTuple):
    """The end of a descent."""

    point: Vector
    converged: bool
    iterations: int
    diverged: bool = False


class LineStep(NamedTuple):
    """A step along a line, and where it led."""

    before: Vector
    """Gradient at its beginning."""
    direction: Vector
    moved: Vector
    gradient: Vector
    """At its end."""


Direction: TypeAlias = Callable[[LineStep], Vector]
"""The direction after a step."""


class Limits(NamedTuple):
    """The end of a descent, unless a minimum is reached before."""

    tol: float
    max_iter: int
    watch: Watch = lambda _, __: False


class BoldPace(NamedTuple):
    rate: float
    """Rate of the first step."""
    growth: float = 1.1
    """Factor of the rate after a step that lowers the value."""
    reduction: float = 0.5
    """Factor after a step that does not."""


def gradient_descent(function: Function, start: Vector, rate: float, limits: Limits) -> Descent:
    """Steps of −rate·gradient (LION 9.2)."""
    tol, max_iter, watch = limits
    point, (value, gradient) = start, function(start)
    best, lowest, first = start, value, value
    for iteration in range(max_iter):
        if flat(value, gradient, tol):
            return Descent(point, converged=True, iterations=iteration)
        point = point - rate * gradient
        value, gradient = function(point)
        if not value <= RUNAWAY * max(first, EPS):  # NaN is not
            return Descent(best, converged=False, iterations=iteration + 1, diverged=True)
        if value < lowest:
            best, lowest = point, value
        if watch(point, value):
            return Descent(point, converged=False, iterations=iteration + 1)
    return Descent(best, flat(*function(best), tol), max_iter)


def bold_driver(function: Function, start: Vector, pace: BoldPace, limits: Limits) -> Descent:
    """Gradient descent whose rate grows with every step that lowers the value, and is reduced until one does (eq. 9.5).

    A point where no rate lowers the value is the end.
    """
    tol, max_iter, watch = limits
    rate, growth, reduction = pace
    point, (value, gradient) = start, function(start)
    for iteration in range(max_iter):
        if flat(value, gradient, tol):
            return Descent(point, converged=True, iterations=iteration)
        accident = False
        while True:
            trial = point - rate * gradient
            evaluated = function(trial)
            if evaluated[0] < value:
                break
            accident, rate = True, rate * reduction
            if np.array_equal(trial, point) or rate == 0.0:
                return Descent(point, flat(value, gradient, tol), iteration)
        point, (value, gradient) = trial, evaluated
        rate = rate if accident else rate * growth
        if watch(point, value):
            return Descent(point, converged=False, iterations=iteration + 1)
    return Descent(point, flat(value, gradient, tol), max_iter)


def steepest(step: LineStep) -> Vector:
    """Against the gradient."""
    return -step.gradient


def conjugate(step: LineStep) -> Vector:
    """Conjugate gradients by the rule of Polak and Ribière, never below 0."""
    square = step.before @ step.before
    beta = max(0.0, float(step.gradient @ (step.gradient - step.before) / square)) if square > 0 else 0.0
    return -step.gradient + beta * step.direction


def one_step_secant(step: LineStep) -> Vector:
    """BFGS without memory: the inverse Hessian is the unit matrix, corrected by the last step (Battiti 1992)."""
    s, y, g = step.moved, step.gradient - step.before, step.gradient
    curvature = s @ y
    if curvature <= 0:
        return -g
    b = (s @ g) / curvature
    a = -(1 + (y @ y) / curvature) * b + (y @ g) / curvature
    return -g + a * s + b * y


def along_lines(
    function: Function, start: Vector, direction_after: Direction, precision: float, limits: Limits
) -> Descent:
    """The minimum along one direction after another; every `start.size` steps, and where it leads up, anew.

    precision: share of the slope at its beginning that a line may keep at its minimum.
    """
    tol, max_iter, watch = limits
    point, (value, gradient) = start, function(start)
    direction, length = -gradient, 0.0
    for iteration in range(max_iter):
        if flat(value, gradient, tol):
            return Descent(point, converged=True, iterations=iteration)
        if iteration % start.size == 0 or gradient @ direction >= 0:
            direction = -gradient
        begin, first = Point(point, value, gradient), length or min(1.0, 1.0 / float(np.linalg.norm(gradient)))
        minimum = _line_minimum(function, begin, direction, first, precision)
        if minimum is None:
            direction = -gradient
            minimum = _line_minimum(function, begin, direction, first, precision)
        if minimum is None or not _lower(minimum[1], begin):  # rounding hides any decrease
            return Descent(point, flat(value, gradient, tol), iteration)
        length, (trial, value, slope) = minimum
        step = LineStep(gradient, direction, trial - point, slope)
        point, gradient, direction = trial, slope, direction_after(step)
        if watch(point, value):
            return Descent(point, converged=False, iterations=iteration + 1)
    return Descent(point, flat(value, gradient, tol), max_iter)


class Point(NamedTuple):
    x: Vector
    value: float
    gradient: Vector

    @classmethod
    def of(cls, function: Function, x: Vector) -> "Point":
        return cls(x, *function(x))


def _lower(point: Point, begin: Point) -> bool:
    """True if the value is lower, or else the slopes are smaller."""
    return point.value < begin.value or bool(np.abs(point.gradient).max() < 0.9 * np.abs(begin.gradient).max())


def _line_minimum(
    function: Function, begin: Point, direction: Vector, first: float, precision: float
) -> tuple[float, Point] | None:
    """Length of the step, and the point; None where no step lowers the value.

    Secants of the slope along the line find where it is 0, on a parabola the second time; a step that leaves the
    interval between a slope down and a slope up is replaced by its middle.
    """
    value, slope = begin.value, float(begin.gradient @ direction)
    low, low_slope, high, high_slope = 0.0, slope, np.inf, np.inf
    length, best, least = first, None, np.inf
    for _ in range(TRIALS):
        trial = Point.of(function, begin.x + length * direction)
        slope_here = float(trial.gradient @ direction)
        falls = trial.value <= value + SUFFICIENT * length * slope + 4 * EPS * abs(value)
        if falls and abs(slope_here) < least:
            best, least = (length, trial), abs(slope_here)
        if falls and abs(slope_here) <= precision * abs(slope):
            return length, trial
        if not falls or not slope_here < 0:
            high, high_slope = length, slope_here if 0 < slope_here < np.inf else np.inf
        else:
            low, low_slope = length, slope_here
        length = _next_length(low, low_slope, high, high_slope, slope)
        if low > (1 - EPS) * high:
            break
    return best


def _next_length(low: float, low_slope: float, high: float, high_slope: float, slope: float) -> float:
    if high == np.inf:  # the line still leads down: as far as the secant from its beginning
        rise = low_slope - slope
        secant = low * slope / -rise if rise > 0 else np.inf
        return float(min(max(secant, 1.5 * low), MAX_STEP_GROWTH * low))
    if high_slope == np.inf:
        return low + (high - low) / 2 if low > 0 else high / MAX_STEP_GROWTH
    secant = low + (high - low) * low_slope / (low_slope - high_slope)
    margin = 1e-3 * (high - low)
    return float(secant) if low + margin < secant < high - margin else low + (high - low) / 2
