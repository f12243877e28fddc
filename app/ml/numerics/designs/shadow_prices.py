"""Lagrange multipliers at a maximum: the prices of its limits.

Where f is largest under limits, its gradient is a sum of those of the limits that it touches,

    ∇f = Σ λᵢ ∇gᵢ,  λᵢ ≥ 0 for gᵢ(x) ≤ cᵢ,

and λᵢ is the change of the maximum for a change of cᵢ by one. Non-negative least squares finds the multipliers; what of
the gradient they leave shows whether the point is a maximum. Derivatives are differences, at two steps: where these
disagree the function is not smooth, and where no step changes its value it is constant around the point, as sums of
trees are.

Source: Battiti & Brunato, The LION Way, section 8.3.1; Nocedal & Wright (2006), Numerical Optimization, theorem 12.1;
Lawson & Hanson (1974), Solving Least Squares Problems, ch. 23.
"""

from typing import Literal, NamedTuple

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.designs.climb import STEP, Functions, Slopes, slopes
from app.ml.numerics.designs.design_space import DesignSpace

TOUCHES = 1e-5
"""Share of a width, or of the largest change along one, within which a point touches a limit."""
SMALL_STEP_SHARE = 0.01
"""Share of a step that no longer crosses an edge of a step function, as a rule."""
AGREE = 0.05
"""Share of the largest slope by which those of two steps may differ."""
LEFT = 0.05
"""Share of the slopes that multipliers may leave of a maximum."""


class Limit(NamedTuple):
    """A limit that a point touches."""

    kind: Literal["bound", "constraint", "demand"]
    place: int
    upper: bool
    """True if the limit is above: of a demand, always."""
    gradient: Vector
    """(d,) of gᵢ, by widths."""
    unit: float
    """Change of gᵢ for a change of the limit by one: of a bound, a width to the power −1."""


class Price(NamedTuple):
    limit: Limit
    value: float
    """Change of the maximum if the limit moves up by one."""


class Prices(NamedTuple):
    found: tuple[Price, ...] | None
    reason: Literal["step_function", "not_smooth", "not_a_maximum"] | None
    """Reason why there are none."""


def shadow_prices(space: DesignSpace, functions: Functions, point: Vector, spread: float) -> Prices:
    """functions: the value, then demands, each at least 0. spread: of the value over the space."""
    coarse, fine = slopes(space, functions, point, 10 * STEP), slopes(space, functions, point)
    if spread > 0 and fine.constant:
        return Prices(None, "step_function")
    scale = np.maximum(np.abs(fine.gradients).max(axis=1, initial=0.0), [spread, *np.zeros(len(fine.values) - 1)])
    if (np.abs(coarse.gradients - fine.gradients).max(axis=1, initial=0.0) > AGREE * scale).any():
        edge = slopes(space, functions, point, SMALL_STEP_SHARE * STEP)
        return Prices(None, "step_function" if edge.constant else "not_smooth")
    limits = touched(space, fine, point)
    multipliers = _multipliers(fine.gradients[0], [limit.gradient for limit in limits])
    left = fine.gradients[0] - sum(
        (m * limit.gradient for m, limit in zip(multipliers, limits, strict=True)), np.zeros(space.d)
    )
    if np.abs(left).max(initial=0.0) > LEFT * scale[0]:
        return Prices(None, "not_a_maximum")
    signed = [m * limit.unit * (1 if limit.upper else -1) for m, limit in zip(multipliers, limits, strict=True)]
    return Prices(tuple(Price(*pair) for pair in zip(limits, signed, strict=True)), None)


def touched(space: DesignSpace, slopes: Slopes, point: Vector) -> list[Limit]:
    """The limits that the point touches: bounds of free variables, constraints and demands."""
    limits_touched, units = list[Limit](), np.eye(space.d)
    for i in np.flatnonzero(space.free).tolist():
        reach = TOUCHES * space.width[i]
        if point[i] >= space.upper[i] - reach:
            limits_touched.append(Limit("bound", i, upper=True, gradient=units[i], unit=1 / space.width[i]))
        elif point[i] <= space.lower[i] + reach:
            limits_touched.append(Limit("bound", i, upper=False, gradient=-units[i], unit=1 / space.width[i]))
    limits = space.limits
    for i, row in enumerate(limits.weights):
        gradient = row * space.width * space.free
        total, reach = row @ point, TOUCHES * np.abs(gradient).max(initial=0.0)
        if gradient.any() and total >= limits.greatest[i] - reach:
            limits_touched.append(Limit("constraint", i, upper=True, gradient=gradient, unit=1.0))
        if gradient.any() and total <= limits.least[i] + reach:
            limits_touched.append(Limit("constraint", i, upper=False, gradient=-gradient, unit=1.0))
    for i, (value, gradient) in enumerate(zip(slopes.values[1:], slopes.gradients[1:], strict=True)):
        if gradient.any() and abs(value) <= TOUCHES * np.abs(gradient).max():
            limits_touched.append(Limit("demand", i, upper=True, gradient=-gradient, unit=1.0))
    return limits_touched


def _multipliers(gradient: Vector, columns: list[Vector]) -> Vector:
    if not columns:
        return np.zeros(0)
    matrix: Matrix = np.column_stack(columns)
    norm = np.linalg.norm(matrix, axis=0)
    scaled, _ = scipy.optimize.nnls(matrix / norm, gradient)
    multipliers: Vector = scaled / norm
    return multipliers
