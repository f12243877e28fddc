"""Losses with a corner to their exact minimum: a primal-dual interior point method, which ends with a proof.

The loss of a residual r is the larger of upper·r and lower·r, with lower ≤ 0 ≤ upper: absolute errors, or the hinge of
t − z for signs t = ±1. It is the largest u·r over lower ≤ u ≤ upper, so any such u gives a bound from below. One
iteration costs about what one of Newton's method does, and some twenty arrive, whatever the rows.

References: Mehrotra (1992), SIAM J. Optim. 2:575; Portnoy & Koenker (1997), Statist. Sci. 12:279 (absolute errors);
Ferris & Munson (2002), SIAM J. Optim. 13:783 (support vector machines).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.linear_algebra.solve import EPS, positive_solver
from app.ml.numerics.linear_models.losses import Loss, MeanLoss
from app.ml.numerics.optimise.gradient_descent import Bottom

BLOCK = 1024
"""Rows worked on at a time."""
STEP_TO_BOUNDARY = 0.995
"""Share of the way to the nearest bound that a step takes."""
PATIENCE = 10
"""Iterations without a smaller gap after which rounding has the better of it."""
ROUNDING = 8 * EPS
"""Share of the loss at zero, and of its slope, that is rounding."""
MIN_DISTANCE_RATIO = EPS**8
"""Distances of a row to its corner, over what its dual may move, of which the reciprocals still multiply."""
DEPENDENT = 1e-10
"""Share of the largest eigenvalue of the columns' products below which columns are looked at more closely."""

Watch = Callable[[float, float], None]
"""Receives the value and its gap after every iteration."""


class Corners(NamedTuple):
    """Σ max(upper·r, lower·r) + ½ Σ penalty·point²  with  r = target − a·point."""

    a: Matrix
    """(n, m)."""
    target: Vector
    lower: Vector
    upper: Vector
    """(n,)."""
    penalty: Vector
    """(m,) not negative; no more than rounding is none. Columns and targets are about 1."""


class Proven(NamedTuple):
    point: Vector
    """(m,) the lowest met."""
    value: float
    gap: float
    """The value is above the minimum by this much at most, but for rounding."""
    iterations: int


class _Iterate(NamedTuple):
    """r = above − below, both positive, and lower < dual < upper; each product with its slack goes to zero."""

    point: Vector
    above: Vector
    below: Vector
    dual: Vector

    def moved(self, step: "_Iterate", share: float) -> "_Iterate":
        return _Iterate(*(here + share * move for here, move in zip(self, step, strict=True)))


def minimise(problem: Corners, tol: float, max_iter: int, watch: Watch) -> Proven:
    """Until the gap is no more than `tol` times the value, or rounding keeps it from falling; rounding is no gap."""
    basis = _basis(problem)
    if basis is None:
        return _follow(problem, tol, max_iter, watch)
    penalty = problem.penalty @ (basis * basis)
    inner = _follow(problem._replace(a=problem.a @ basis, penalty=penalty), tol, max_iter, watch)
    return inner._replace(point=basis @ inner.point)


def _basis(problem: Corners) -> Matrix | None:
    """(m, k) columns in which points are looked for; None: as they are.

    Where nothing is penalised, columns may depend on each other: others of unit length take their place. Of more
    columns than rows, only combinations of rows play a part.
    """
    a, free = problem.a, problem.penalty == 0
    n, m = a.shape
    if free.all() and m:
        values = scipy.linalg.eigvalsh(_gram(a, np.ones(n)))
        if m <= n and values[0] > DEPENDENT * values[-1]:
            return None
        _, lengths, directions = scipy.linalg.svd(a, full_matrices=False)
        significant = lengths > max(n, m) * EPS * lengths.max(initial=0.0)
        return np.asarray(directions[significant].T * (np.sqrt(n) / lengths[significant]))
    if free.all() or (~free).sum() <= n:
        return None
    root = np.sqrt(problem.penalty[~free])
    turn, _ = np.linalg.qr((a[:, ~free] / root).T)
    basis = np.zeros((m, n + free.sum()))
    basis[~free, :n], basis[free, n:] = turn / root[:, None], np.eye(free.sum())
    return basis


def proven(function: MeanLoss, tol: float, max_iter: int, watch: Watch) -> Bottom:
    """The minimum of a loss with a corner, score by score. `watch` receives the sums; the others may fall to 0."""
    weights, point, iterations = function.weights, function.zero, 0
    usable = np.square(function.x).any(axis=0)  # the others are too short to be divided by
    values = weights @ np.abs(function.targets)  # at zero
    gaps = values.copy()
    for c, target in enumerate(function.targets.T):
        absolute = function.kind is Loss.ABSOLUTE
        lower, upper = (-weights, weights) if absolute else weights * [np.minimum(target, 0), np.maximum(target, 0)]
        problem = Corners(function.x[:, usable], target, lower, upper, function.penalty[usable, 0])

        def watch_one(value: float, gap: float, c: int = c) -> None:
            values[c], gaps[c] = value, gap
            watch(float(values.sum()), float(gaps.sum()))

        solved = minimise(problem, tol, max_iter - iterations, watch_one)
        point[usable, c], gaps[c] = solved.point, solved.gap
        iterations += solved.iterations
    return Bottom(point, converged=bool(gaps.sum() <= tol * values.sum()), iterations=iterations)


def _follow(problem: Corners, tol: float, max_iter: int, watch: Watch) -> Proven:
    size = np.abs(problem.target).mean() or 1.0
    start = np.maximum(problem.target, 0) + size, np.maximum(-problem.target, 0) + size
    iterate = _Iterate(np.zeros(problem.a.shape[1]), *start, (problem.lower + problem.upper) / 2)
    best, since = Proven(iterate.point, *_measured(problem, iterate), 0), 0
    rounding = float(ROUNDING * np.maximum(problem.upper, -problem.lower) @ np.abs(problem.target))
    for iteration in range(1, max_iter + 1):
        if best.gap <= tol * best.value or best.value <= rounding or since > PATIENCE:
            break
        if not _is_inside(problem, iterate):
            break
        iterate = _step(problem, iterate)
        value, gap = _measured(problem, iterate)
        since = 0 if gap < best.gap else since + 1
        best = best._replace(iterations=iteration)
        if gap < best.gap:
            best = Proven(iterate.point, value, gap, iteration)
        watch(best.value, max(best.gap - rounding, 0.0))
    return best._replace(gap=max(best.gap - rounding, 0.0))


def _is_inside(problem: Corners, iterate: _Iterate) -> bool:
    """True if there is a next step: rows that are fitted to the last bit have none."""
    room, depth = problem.upper - iterate.dual, iterate.dual - problem.lower
    if min(room.min(), depth.min()) <= 0:
        return False
    return bool(
        np.isfinite(iterate.point).all() and (iterate.above / room + iterate.below / depth).min() > MIN_DISTANCE_RATIO
    )


def _measured(problem: Corners, iterate: _Iterate) -> tuple[float, float]:
    """Value and gap, each a sum of parts that are not negative: nothing cancels. No minimum is below 0."""
    a, target, lower, upper, penalty = problem
    point, dual = iterate.point, iterate.dual
    r = target - a @ point
    over, under = np.maximum(r, 0), np.maximum(-r, 0)
    value = float(upper @ over - lower @ under + 0.5 * penalty @ point**2)
    pull = penalty * point - a.T @ dual
    free = penalty <= EPS
    gap = (upper - dual) @ over + (dual - lower) @ under + 0.5 * (pull[~free] ** 2 / penalty[~free]).sum()
    rounding = ROUNDING * np.maximum(upper, -lower)
    slope = np.maximum(np.abs(pull[free]) - rounding.sum(), 0.0)
    gap += slope @ np.maximum(np.abs(point[free]), 1.0)
    return value, min(float(gap), value)


def _step(problem: Corners, iterate: _Iterate) -> _Iterate:
    """Mehrotra's predictor, which finds how far the bounds let a step go, and his corrector."""
    room, depth = problem.upper - iterate.dual, iterate.dual - problem.lower
    curvature = 1 / (iterate.above / room + iterate.below / depth)
    r = problem.target - problem.a @ iterate.point
    pull = problem.penalty * iterate.point - problem.a.T @ iterate.dual
    solve = positive_solver(_gram(problem.a, curvature) + np.diag(problem.penalty))

    def towards(above: Vector, below: Vector) -> _Iterate:
        """To where the products with room and depth have these values, in first order."""
        remaining = r - above / room + below / depth
        point = solve(problem.a.T @ (curvature * remaining) - pull)
        dual = curvature * (remaining - problem.a @ point)
        return _Iterate(
            point,
            (above + iterate.above * dual) / room - iterate.above,
            (below - iterate.below * dual) / depth - iterate.below,
            dual,
        )

    nothing = np.zeros_like(r)
    trial = towards(nothing, nothing)
    share = _reach(problem, iterate, trial)
    mean = (iterate.above @ room + iterate.below @ depth) / (2 * len(r))
    there = iterate.moved(trial, share)
    left = (there.above @ (problem.upper - there.dual) + there.below @ (there.dual - problem.lower)) / (2 * len(r))
    aim = mean * (left / mean) ** 3
    step = towards(aim + trial.above * trial.dual, aim - trial.below * trial.dual)
    return iterate.moved(step, min(1.0, STEP_TO_BOUNDARY * _reach(problem, iterate, step)))


def _reach(problem: Corners, iterate: _Iterate, step: _Iterate) -> float:
    """The share of the step, at most 1, that stays within the bounds."""
    room, depth = problem.upper - iterate.dual, iterate.dual - problem.lower
    sides = ((iterate.above, step.above), (iterate.below, step.below), (room, -step.dual), (depth, step.dual))
    steepest = max(float((-move / here).max()) for here, move in sides)
    return 1.0 if steepest <= 1 else 1 / steepest


def _gram(a: Matrix, weights: Vector) -> Matrix:
    gram, root = np.zeros((a.shape[1], a.shape[1])), np.sqrt(weights)
    for start in range(0, len(a), BLOCK):
        part = a[start : start + BLOCK] * root[start : start + BLOCK, None]
        gram += part.T @ part
    return gram
