r"""Linear support vector machines of many rows: the programme of `smo`, in the weights of the columns.

With K = XXᵀ the minimum over β is that of  ½‖w‖² + Σ sup_β (β uᵢ − ε|β|)  over w and b, where u = z − Xw − b and β lies
within its bounds. The method of multipliers takes, for a growing σ,

    βᵢ ← argmax over the bounds of  β tᵢ − ε|β| − β²/(2σ)  with  t = u + βᵢ/σ

after w and b have minimised what the maximum makes of the second term, which is smooth: by Newton's method with the
rows whose coefficients are free, a system of as many unknowns as columns. Of many rows, some give a first plane; rows
far from where their loss bends keep the coefficient that they have there, until a plane is found on whose other side
they are.

References: Rockafellar (1976), Math. Oper. Res. 1:97; Li, Sun & Toh (2018), SIAM J. Optim. 28:433.
"""

import math
from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.contract.sparse_rows import sparse
from app.ml.numerics.kernel_functions.linear_kernel import Linear
from app.ml.numerics.linear_algebra.solve import positive_solver
from app.ml.numerics.row_blocks import blocks
from app.ml.numerics.support_vectors.kernel_rows import KernelRows
from app.ml.numerics.support_vectors.smo import Problem, Settings, Solution, balanced, edges_of, solution_of, solve
from app.ml.numerics.support_vectors.sparse_machine import solve_sparse

GROWTH = 5.0
"""Factor of σ from one round to the next."""
KNOWN = 25.0
"""Factor of the first σ where a plane is known."""
STEPS = 60
"""Newton steps of a round at most."""
SUBSET, LEAST_SUBSET = 16, 2
"""The start is the minimum for one row of so many, at most and at least."""
MIN_SUBSET_ROWS, MIN_ROWS_PER_COLUMN = 3000, 100
"""Rows, and rows for each column, that remain at least: the plane of fewer is far from that of all."""
MIN_NEAR_SHARE, NEAR_SHARE_FACTOR = 0.15, 2.0
"""Share of the rows, nearest to where their loss bends, whose coefficients are looked for at first: at least, and for
the error √(d/m) of the plane of m rows.
"""
NEAR_ROWS_SHARE = 0.03
"""Share of the rows whose coefficients are looked for when the plane is nearly known."""
ROUGH = 0.03
"""Tolerance with which the plane is nearly known."""
SLOPE = 0.1
"""Share of `tol` by which residuals may differ for slopes at the end of a round."""
BALANCE, ROUNDING = 1e-9, 1e-15
"""Σ β at the end of a round, and slopes that are rounding, as shares of the sum of all bounds."""
LEVEL = 1e3
"""Factor of the allowed Σ β beyond which there is no minimum; below, steps have ended by rounding."""
MAX_SIGMA_FACTOR = 1e12
"""Factor of σ at most."""
LEAST_STEP = 1e-10
NOISE = 1e-13
"""Share of a value below which differences are rounding: a step that changes it by less is taken."""
MANY_ROWS, MANY_COLUMNS = 1000, 1000
"""The method takes at least so many rows, five for each column, and at most so many columns."""


class Point(NamedTuple):
    """Weights and intercept, with what follows from them."""

    weights: Vector
    """(d,)"""
    intercept: float
    plane: Vector
    """(m,) Xw + b."""


class Part(NamedTuple):
    """Rows whose coefficients are looked for; those of the others are kept."""

    x: Matrix
    """(m, d)"""
    problem: Problem
    pull: Vector
    """(d + 1,) Σ βx of the other rows, and Σ β."""
    allowed: Vector
    """(d + 1,) slopes at the end of a round."""
    kept: bool
    """True if there are other rows."""

    @classmethod
    def of(cls, x: Matrix, problem: Problem, coef: Vector, active: Labels, tol: float) -> "Part":
        some = active.size < len(x)
        others = coef.copy()
        others[active] = 0.0
        total = float(np.maximum(problem.upper, -problem.lower).sum())
        rows = x[active] if some else x
        size = np.sqrt(np.einsum("ij,ij->j", rows, rows) / len(rows))
        size = np.where(size > 0, size, 1.0)
        slopes = np.maximum(SLOPE * tol / (size * size.size), ROUNDING * total * size)
        return cls(
            rows,
            of_rows(problem, active) if some else problem,
            np.append(x.T @ others, others.sum()),
            np.append(slopes, BALANCE * total),
            some,
        )

    def residual(self, coef: Vector) -> Vector:
        """(m,) z − Xw."""
        result: Vector = self.problem.linear - self.x @ (self.pull[:-1] + self.x.T @ coef)
        return result


def of_rows(problem: Problem, rows: Labels | slice, factor: float = 1.0) -> Problem:
    """The programme of these rows only, with bounds multiplied by a factor."""
    p = problem
    return Problem(p.linear[rows], factor * p.lower[rows], factor * p.upper[rows], p.start[rows], p.epsilon)


def minimum(rows: KernelRows, problem: Problem, settings: Settings) -> Solution:
    """The minimum by the method for the kernel and the number of rows. The bounds are finite, and Σ β is 0."""
    if (texts := sparse(rows.rows)) is not None:
        return solve_sparse(texts, rows.diagonal, problem, settings)
    if has_weights(rows):
        return solve_linear(rows.rows, problem, settings)
    return solve(rows, problem, settings)


def has_weights(rows: KernelRows) -> bool:
    """True if the machine of these rows is found in the weights of its columns."""
    return isinstance(rows.kernel, Linear) and in_weights(*rows.rows.shape)


def in_weights(rows: float, columns: float) -> bool:
    """True if a linear machine of this size is found in the weights of its columns."""
    return rows >= max(MANY_ROWS, 5 * columns) and columns <= MANY_COLUMNS


def weights_seconds(rows: float, columns: float) -> float:
    """Seconds of that: Newton steps, of all rows or of some that give the first plane, and passes over all."""
    stepped = min(rows, max(MIN_SUBSET_ROWS, MIN_ROWS_PER_COLUMN * columns))
    return 5e-3 + 1e-9 * stepped * columns**2 + rows * (3e-7 + 2.2e-8 * columns)


def solve_linear(x: Matrix, problem: Problem, settings: Settings) -> Solution:
    """The minimum for rows x (n, d), from β = 0, whose sum is 0; the bounds are finite."""
    n, d = x.shape
    weights, b, active, coef = np.zeros(d), 0.0, np.arange(n), np.zeros(n)
    sigma, steps, tol = _first(problem), 0, settings.tol
    if (stride := min(SUBSET, n // max(MIN_SUBSET_ROWS, MIN_ROWS_PER_COLUMN * d))) >= LEAST_SUBSET:
        some, rough = slice(None, None, stride), max(tol, ROUGH)
        rows = np.ascontiguousarray(x[some])
        solution = solve_linear(rows, of_rows(problem, some, stride), settings._replace(tol=rough))
        weights, b = rows.T @ solution.coef, solution.intercept
        share = max(MIN_NEAR_SHARE, NEAR_SHARE_FACTOR * math.sqrt(d / len(rows)))
        coef, near = _split(problem, problem.linear - x @ weights - b, share)
        sigma *= KNOWN
        rounds = _rounds(Part.of(x, problem, coef, near, rough), (weights, b), sigma, rough)
        steps = rounds.steps
        if rounds.close:
            weights, b = rounds.point.weights, rounds.point.intercept
            coef, active = _split(problem, problem.linear - x @ weights - b, NEAR_ROWS_SHARE)
    while True:
        part, whole = Part.of(x, problem, coef, active, tol), active.size == n
        rounds = _rounds(part, (weights, b), sigma, tol)
        steps += rounds.steps
        if not (whole or rounds.close):
            active = np.arange(n)
            continue
        coef[active] = rounds.coef
        weights = x.T @ coef
        solution = solution_of(problem, coef, problem.linear - x @ weights, steps)
        b = solution.intercept
        if balanced(problem, solution, settings.tol) and solution.converged_to(problem, settings.tol):
            return solution._replace(converged=True)
        if steps >= settings.max_iter or (whole and tol < settings.tol):
            return solution
        fixed = np.ones(n, bool)
        fixed[active] = False
        wrong = np.flatnonzero(fixed & (_far(problem, solution.residual - b) != coef))
        more = np.union1d(active, wrong)
        active = more if wrong.size and more.size < n / 2 else np.arange(n)
        tol *= 1.0 if wrong.size else 0.1


def _first(problem: Problem) -> float:
    """The first σ, with which most coefficients are free."""
    bound = float(np.maximum(problem.upper, -problem.lower).mean())
    return 0.5 * bound / max(float(np.abs(problem.linear).mean()), np.finfo(float).tiny)


def _split(problem: Problem, distances: Vector, share: float) -> tuple[Vector, Labels]:
    """Coefficients (n,) of rows far from where the loss bends, and the rows of this share that are near."""
    count = int(share * distances.size)
    near = np.argpartition(np.abs(np.abs(distances) - problem.epsilon), count)[:count]
    return _far(problem, distances), np.sort(near)


def _far(problem: Problem, distances: Vector) -> Vector:
    """(n,) coefficients of rows at these residuals less the intercept, far from where the loss bends."""
    bounds = np.where(distances > 0, problem.upper, problem.lower)
    return np.where(np.abs(distances) > problem.epsilon, bounds, 0.0)


class Rounds(NamedTuple):
    """The minimum of a part."""

    point: Point
    coef: Vector
    """(m,)"""
    steps: int
    close: bool
    """True if it was found to the tolerance. With the coefficients of all other rows kept there may be none."""


def _rounds(part: Part, start: tuple[Vector, float], sigma: float, tol: float) -> Rounds:
    """The minimum of a part. start: weights and intercept."""
    point = Point(*start, part.x @ start[0] + start[1])
    coef, steps, most = np.zeros(len(part.x)), 0, MAX_SIGMA_FACTOR * sigma
    while True:
        point, coef, done = _newton(part, point, coef, sigma)
        steps += done
        best, lowest = edges_of(part.problem, coef, part.residual(coef))
        left = abs(float(coef.sum()) + part.pull[-1])
        close = best - lowest <= tol and left <= LEVEL * part.allowed[-1]
        if close or sigma > most or (done == STEPS and part.kept):
            return Rounds(point, coef, steps, close)
        sigma *= GROWTH


def _newton(part: Part, point: Point, before: Vector, sigma: float) -> tuple[Point, Vector, int]:
    """The minimum over the weights, for coefficients (m,) of the round before; new coefficients; steps."""
    shift = before / sigma
    value, coef = _smooth(part, point, shift, sigma)
    for step in range(STEPS):
        slope = np.append(point.weights - part.x.T @ coef, -coef.sum()) - part.pull
        if (np.abs(slope) <= part.allowed).all():
            return point, coef, step
        move = _direction(part, coef, slope, sigma)
        along = part.x @ move[:-1] + move[-1]
        size, descent = 1.0, float(slope @ move)
        while True:
            tried = Point(
                point.weights + size * move[:-1], point.intercept + size * float(move[-1]), point.plane + size * along
            )
            new, new_coef = _smooth(part, tried, shift, sigma)
            if new <= value + 1e-4 * size * descent + NOISE * abs(value):
                break
            size /= 2
            if size < LEAST_STEP:
                return point, coef, step
        point, value, coef = tried, new, new_coef
    return point, coef, STEPS


def _smooth(part: Part, point: Point, shift: Vector, sigma: float) -> tuple[float, Vector]:
    """The smooth objective, and the coefficients (m,) at which its maxima are."""
    problem, weights = part.problem, point.weights
    t = problem.linear - point.plane + shift
    if problem.epsilon:
        soft = np.maximum(np.abs(t) - problem.epsilon, 0.0)
        coef = np.minimum(np.maximum(sigma * np.copysign(soft, t), problem.lower), problem.upper)
        value = coef @ t - problem.epsilon * np.abs(coef).sum()
    else:
        coef = np.minimum(np.maximum(sigma * t, problem.lower), problem.upper)
        value = coef @ t
    linear_term = part.pull[:-1] @ weights + part.pull[-1] * point.intercept
    return float(0.5 * weights @ weights - linear_term + value - coef @ coef / (2 * sigma)), coef


def _direction(part: Part, coef: Vector, slope: Vector, sigma: float) -> Vector:
    """(d + 1,) Newton's step."""
    x, problem = part.x, part.problem
    d = x.shape[1]
    free = np.flatnonzero((coef > problem.lower) & (coef < problem.upper) & (coef != 0))
    curve = np.zeros((d + 1, d + 1))
    for block in blocks(free.size, d):
        rows = x[free[block]]
        sums = np.ones(len(rows)) @ rows
        curve[:d, :d] += rows.T @ rows
        curve[d, :d] += sums
        curve[:d, d] += sums
    curve[d, d] = max(free.size, 1)
    curve *= sigma
    curve[np.arange(d), np.arange(d)] += 1.0
    curve[d, d] *= 1 + 1e-10
    return -positive_solver(curve)(slope)
