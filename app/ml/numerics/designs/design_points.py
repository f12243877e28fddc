"""Points of a design space: drawn evenly over all of it, and moved a little from where they are.

Without constraints the points are a scrambled Sobol sequence. With them, walkers start inside and take steps of random
length along random directions, as far as the limits allow (hit and run), which converges to even coverage; directions
keep equalities. A move of a given size changes some variables: numbers by a normal step, whole numbers to a near one,
categories to another. A point that rounding carries over a limit stays where it was.

Source: Owen (1998), ACM Trans. Model. Comput. Simul. 8:71; Smith (1984), Oper. Res. 32:1296.
"""

import numpy as np
import scipy

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.designs.design_space import DesignSpace

SWEEPS = 8
"""Steps of a walker for each variable before it counts as drawn."""


def drawn_points(space: DesignSpace, start: Vector, logarithm: int, rng: np.random.Generator) -> Matrix:
    """(2^logarithm, d) feasible points. start: (d,) a feasible one."""
    shares = scipy.stats.qmc.Sobol(max(space.d, 1), rng=rng).random_base2(logarithm)[:, : space.d]
    stepped = space.whole | space.category
    spread = np.where(stepped, np.floor(shares * (space.width + 1)), shares * space.width)
    points: Matrix = np.clip(space.lower + spread, space.lower, space.upper)
    if not len(space.limits.least):
        return points
    bound = ~space.category
    walkers = np.where(bound, start, points)
    for _ in range(SWEEPS * int(bound.sum())):
        walkers = _hit_and_run(space, walkers, rng)
    return walkers


def _hit_and_run(space: DesignSpace, points: Matrix, rng: np.random.Generator) -> Matrix:
    """One step along a line, and one along a whole number, for each point."""
    directions = _kept(space, rng.normal(size=points.shape) * space.free)
    away = np.full(len(points), np.inf)
    low, high = space.steps(points, -directions, away), space.steps(points, directions, away)
    moved = low + rng.random((len(points), 1)) * (high - low)
    if space.whole.any():
        coordinate = np.flatnonzero(space.whole)[rng.integers(space.whole.sum(), size=len(points))]
        unit = np.eye(space.d)[coordinate]
        low, high = np.ceil(space.steps(moved, -unit, away) - 1e-9), np.floor(space.steps(moved, unit, away) + 1e-9)
        drawn = np.floor(low + rng.random((len(points), 1)) * (high - low + 1))
        moved = np.where(unit > 0, np.minimum(drawn, high), moved)
    return feasible(space, moved, points)


def moved_points(space: DesignSpace, points: Matrix, sizes: Vector, rng: np.random.Generator) -> Matrix:
    """(n, d) one move of each point. sizes: (n,) standard deviation of a step, in widths."""
    n, d = points.shape
    chosen = rng.random((n, d)) < max(0.3, 1 / max(d, 1))
    chosen[np.arange(n), rng.integers(max(d, 1), size=n)] = True
    steps = rng.normal(size=(n, d)) * chosen * sizes[:, None]
    moved = space.steps(points, _kept(space, steps * space.free), np.ones(n))
    return stepped_points(space, points, moved, steps * space.width, chosen, rng)


def stepped_points(  # noqa: PLR0917  a plain list of what a move is made of
    space: DesignSpace, points: Matrix, moved: Matrix, steps: Matrix, chosen: Labels, rng: np.random.Generator
) -> Matrix:
    """The moves, with steps of the chosen whole numbers and categories besides."""
    if space.whole.any():
        far = np.where(np.abs(steps) < 1, np.sign(steps), np.rint(steps))
        whole = np.clip(points + far, space.lower, space.upper)
        moved = np.where(space.whole & chosen, whole, moved)
    if space.category.any():
        drawn = np.floor(rng.random(points.shape) * (space.width + 1))
        moved = np.where(space.category & chosen, np.clip(drawn, space.lower, space.upper), moved)
    return feasible(space, moved, points)


def feasible(space: DesignSpace, moved: Matrix, points: Matrix) -> Matrix:
    """The moved points, or the points where these are not feasible."""
    return np.where((space.misses(moved) <= np.maximum(1.0, space.misses(points)))[:, None], moved, points)


def _kept(space: DesignSpace, steps: Matrix) -> Matrix:
    """Directions in units of the variables that keep all equalities. steps: in widths."""
    moved: Matrix = (steps - steps @ space.kept.T @ space.kept) * space.width
    return moved
