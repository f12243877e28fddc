"""Parameters of a Gaussian process that maximise its marginal likelihood.

L-BFGS within bounds on the logarithms of the parameters, from several starts, then a step of Newton's method. The
likelihood of many rows takes n³ operations: the starts are compared on some of the rows, and only the best of them is
followed with all.

Source: Rasmussen & Williams, Gaussian Processes for Machine Learning, section 5.4; Byrd, Lu, Nocedal & Zhu (1995), SIAM
J. Sci. Comput. 16:1190.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from app.ml.contract.algorithm import Context, Matrix, Vector
from app.ml.numerics.gaussian_processes.marginal_likelihood import Observations, negative_likelihood

SCREENED = 300
"""Rows on which starts are compared."""
PRECISION = 1e-10
"""Relative change of the likelihood at which a search ends."""
DIFFERENCE = 1e-4
"""Change of a logarithm by which a curvature is measured."""


class Maximum(NamedTuple):
    logarithms: Vector
    """(p + 1,) of the parameters of the kernel, then of the variance of the noise."""
    converged: bool
    iterations: int
    curve: list[float]
    """Negative log likelihood after each iteration with all rows."""


class Search(NamedTuple):
    """Starts and limits of a search."""

    starts: Sequence[Vector]
    """Logarithms (p + 1,), of which parameters that are not learned keep theirs."""
    free: Sequence[bool]
    """(p + 1,) true for the parameters that are learned."""
    bounds: Matrix
    """(p + 1, 2) of the logarithms."""
    max_iter: int


def likelihood_maximum(observations: Observations, search: Search, context: Context) -> Maximum:
    """The best of the maxima that the starts lead to."""
    starts = search.starts
    if not any(search.free):
        return Maximum(starts[0], converged=True, iterations=0, curve=[])
    n, start, rows = len(observations.targets), starts[0], observations
    if n > SCREENED or len(starts) > 1:
        rows = observations.drawn(SCREENED, context.rng)
        best = min((_climb(rows, start, search, lambda _: None) for start in starts), key=lambda climb: climb.end.value)
        start = best.logarithms
    if n > SCREENED or len(starts) == 1:
        rows = observations
        best = _climb(rows, start, search, lambda step: context.progress(min(0.95, step / search.max_iter)))
    return _settled(rows, best, search)


def _descent(observations: Observations, start: Vector, free: NDArray[np.bool_]) -> Callable[[Vector], "Point"]:
    """The point of some values of the parameters that are learned; the others are those of the start."""
    logarithms = start.copy()

    def descent(values: Vector) -> Point:
        logarithms[free] = values
        value, gradient = negative_likelihood(observations, logarithms)
        return Point(values, value, gradient[free])

    return descent


def _climb(observations: Observations, start: Vector, search: Search, follow: Callable[[int], None]) -> "Climb":
    free, curve = np.array(search.free), list[float]()
    descent = _descent(observations, start, free)

    def each(intermediate_result: scipy.optimize.OptimizeResult) -> None:
        curve.append(float(intermediate_result.fun))
        follow(len(curve))

    result = scipy.optimize.minimize(
        lambda values: descent(values)[1:],
        start[free],
        jac=True,
        method="L-BFGS-B",
        bounds=search.bounds[free],
        callback=each,
        options={"maxiter": search.max_iter, "ftol": PRECISION, "gtol": 1e-6 * len(start)},
    )
    logarithms = start.copy()
    logarithms[free] = result.x
    end = Point(result.x, float(result.fun), result.jac)
    return Climb(logarithms, end, bool(result.status == 0), int(result.nit), curve)


def _settled(observations: Observations, climb: "Climb", search: Search) -> Maximum:
    """After a step of Newton's method. observations: of the climb."""
    free = np.array(search.free)
    logarithms, bounds = climb.logarithms.copy(), search.bounds[free]
    last = _newton(_descent(observations, logarithms, free), climb.end, bounds)
    logarithms[free] = last.x
    there = climb.converged or _steepness(last, bounds) <= PRECISION * max(abs(last.value), 1.0)
    return Maximum(logarithms, there, climb.iterations, [*climb.curve, last.value])


class Climb(NamedTuple):
    """The way up from one start."""

    logarithms: Vector
    """(p + 1,) at its end."""
    end: "Point"
    converged: bool
    iterations: int
    curve: list[float]


class Point(NamedTuple):
    """A point of a search, by the parameters that are learned."""

    x: Vector
    value: float
    slope: Vector


def _inside(point: Point, bounds: Matrix) -> Vector:
    """The step down the slope, within the bounds: 0 at a minimum."""
    return np.asarray(np.clip(point.x - point.slope, *bounds.T) - point.x)


def _steepness(point: Point, bounds: Matrix) -> float:
    """Squared length of that step."""
    step = _inside(point, bounds)
    return float(step @ step)


def _newton(descent: Callable[[Vector], Point], start: Point, bounds: Matrix) -> Point:
    """After one step of Newton's method, whose curvatures are differences of slopes, if it makes the slope less.

    Values near a minimum differ by rounding while the parameters are still some 1e-5 away: slopes are nearer the truth.
    """
    moving = np.flatnonzero(_inside(start, bounds))
    curvature = np.empty((moving.size, moving.size))
    for row, place in zip(curvature, moving, strict=True):
        x = start.x.copy()
        x[place] += DIFFERENCE if x[place] + DIFFERENCE <= bounds[place, 1] else -DIFFERENCE
        row[:] = (descent(x).slope - start.slope)[moving] / (x[place] - start.x[place])
    curvature = (curvature + curvature.T) / 2
    if not moving.size or np.linalg.eigvalsh(curvature)[0] <= 0:
        return start
    x = start.x.copy()
    x[moving] -= scipy.linalg.solve(curvature, start.slope[moving], assume_a="pos")
    ended = descent(np.clip(x, *bounds.T))
    return ended if _steepness(ended, bounds) < _steepness(start, bounds) else start
