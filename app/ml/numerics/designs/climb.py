"""The last steps to a maximum: sequential quadratic programming over the numbers, with finite differences in batches.

Whole numbers and categories stay. Differences are central, one-sided where a bound is nearer than a step; their step is
a share of the width of each variable, and all points of one gradient are scored at once.

Source: Kraft (1988), A Software Package for Sequential Quadratic Programming, DFVLR-FB 88-28; Nocedal & Wright (2006),
Numerical Optimization, sections 8.1 and 18.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.designs.design_space import DesignSpace

STEP = 1e-4
"""Step of a difference, in widths."""

Functions = Callable[[Matrix], Matrix]
"""Maps points (n, d) to (n, 1 + k): the value to maximise, then demands, each at least 0."""


class Slopes(NamedTuple):
    """Values and derivatives at a point."""

    values: Vector
    """(1 + k,)."""
    gradients: Matrix
    """(1 + k, d) by the free variables, in values per width; 0 for others."""
    constant: bool
    """True if no step changes the first value."""


def slopes(space: DesignSpace, functions: Functions, point: Vector, step: float = STEP) -> Slopes:
    """step: of the differences, in widths."""
    free = np.flatnonzero(space.free)
    reach = step * space.width[free]
    low = np.maximum(point[free] - reach, space.lower[free])
    high = np.minimum(point[free] + reach, space.upper[free])
    points = np.tile(point, (1 + 2 * len(free), 1))
    points[1 + np.arange(len(free)), free] = low
    points[1 + len(free) + np.arange(len(free)), free] = high
    values = functions(points)
    gradients = np.zeros((values.shape[1], space.d))
    down, up = values[1 : 1 + len(free)], values[1 + len(free) :]
    with np.errstate(invalid="ignore"):  # a value may be −∞
        gradients[:, free] = ((up - down) / (high - low)[:, None] * space.width[free, None]).T
    return Slopes(values[0], gradients, constant=bool((values[:, 0] == values[0, 0]).all()))


def climb(space: DesignSpace, functions: Functions, point: Vector, max_iter: int = 60) -> Vector:
    """A feasible point (d,) near this one, whose value is no lower and whose demands are no more missed."""
    free = np.flatnonzero(space.free)
    if not len(free):
        return point
    cache: dict[bytes, Slopes] = {}

    def slopes_at(shares: Vector) -> Slopes:
        key = shares.tobytes()
        if key not in cache:
            cache.clear()
            cache[key] = slopes(space, functions, _placed(space, point, shares))
        return cache[key]

    first = slopes_at(shares := (point[free] - space.lower[free]) / space.width[free])
    if not np.isfinite(first.values).all() or not np.isfinite(first.gradients).all():
        return point
    scale = np.abs(first.gradients).max(axis=1)
    scale = np.where(scale > 0, scale, 1.0)
    result = scipy.optimize.minimize(
        lambda x: _finite(-slopes_at(x).values[0] / scale[0]),
        shares,
        jac=lambda x: -np.nan_to_num(slopes_at(x).gradients[0, free]) / scale[0],
        method="SLSQP",
        bounds=[(0.0, 1.0)] * len(free),
        constraints=[*_linear(space, point), *_demands(slopes_at, scale, free)],
        options={"maxiter": max_iter, "ftol": 1e-12},
    )
    if not np.isfinite(result.x).all():
        return point
    reached = _placed(space, point, np.clip(result.x, 0, 1))
    values = functions(np.vstack([point, reached]))
    missed = np.maximum(-values[:, 1:], 0.0).max(axis=1, initial=0.0)
    allowed = 1e-9 * float(np.abs(scale[1:]).max(initial=0.0))
    sound = missed[1] <= max(missed[0], allowed) and space.misses(reached[None])[0] <= 1e3
    better = values[1, 0] >= values[0, 0] or missed[1] < missed[0] - allowed
    return reached if sound and better else point


def _placed(space: DesignSpace, point: Vector, shares: Vector) -> Vector:
    placed = point.copy()
    placed[space.free] = np.clip(
        space.lower[space.free] + shares * space.width[space.free], space.lower[space.free], space.upper[space.free]
    )
    return placed


def _finite(value: float) -> float:
    return float(np.nan_to_num(value, nan=1e300, posinf=1e300, neginf=-1e300))


def _linear(space: DesignSpace, point: Vector) -> list[dict[str, object]]:
    """The linear constraints on the shares of the free variables."""
    free, limits = space.free, space.limits
    weights = (limits.weights * space.width)[:, free]
    sums = limits.weights @ np.where(free, space.lower, point)
    norm = np.linalg.norm(weights, axis=1)
    result: list[dict[str, object]] = []
    for i in np.flatnonzero(norm > 0):
        row = weights[i] / norm[i]
        ends = (limits.least[i] - sums[i]) / norm[i], (limits.greatest[i] - sums[i]) / norm[i]
        if space.equal[i]:
            result.append({"type": "eq", "fun": lambda x, r=row, e=ends[0]: r @ x - e, "jac": lambda _, r=row: r})
            continue
        if np.isfinite(ends[0]):
            result.append({"type": "ineq", "fun": lambda x, r=row, e=ends[0]: r @ x - e, "jac": lambda _, r=row: r})
        if np.isfinite(ends[1]):
            result.append({"type": "ineq", "fun": lambda x, r=row, e=ends[1]: e - r @ x, "jac": lambda _, r=row: -r})
    return result


def _demands(slopes_at: Callable[[Vector], Slopes], scale: Vector, free: Labels) -> list[dict[str, object]]:
    if len(scale) == 1:
        return []
    return [
        {
            "type": "ineq",
            "fun": lambda x: np.nan_to_num(slopes_at(x).values[1:] / scale[1:], nan=-1e300),
            "jac": lambda x: np.nan_to_num(slopes_at(x).gradients[1:, free]) / scale[1:, None],
        }
    ]
