r"""Sequential minimal optimisation: the quadratic programme of all support vector machines.

Minimises over β (n,)

    ½ βᵀKβ − zᵀβ + ε Σ |βᵢ|   with   lowerᵢ ≤ βᵢ ≤ upperᵢ,  lowerᵢ ≤ 0 ≤ upperᵢ,   and Σ βᵢ as at the start.

A classifier has z = ±1 and βᵢ between 0 and Cᵢz; a regression z = y and |βᵢ| ≤ Cᵢ; a one-class machine z = 0. Of the
residuals r = z − Kβ, the highest whose coefficient may rise is, at the minimum, not above the least whose coefficient
may fall: the intercept b lies between. A step moves two coefficients that violate this, the first by the highest
residual, the second by the highest gain of a second-order model. Coefficients at a bound that stay there are left out
meanwhile, and their residuals computed again before the end. Rows of K are computed when needed and kept in a cache of
bounded size: K is never formed.

The duality gap is Σ sup_β (β(rᵢ − b) − ε|β|) − (βᵢ(rᵢ − b) − ε|βᵢ|) over the bounds of each coefficient, in which
no term is negative; with infinite bounds, that of the weights made longer until no row violates them. The end is where
residuals differ by `tol` at most and the gap is at most `tol` of the objective.

References: Platt (1999), in: Advances in Kernel Methods: 185; Fan, Chen & Lin (2005), J. Mach. Learn. Res. 6:1889;
Chang & Lin (2011), ACM Trans. Intell. Syst. Technol. 2:27.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import Labels, Vector
from app.ml.numerics.support_vectors.compiled.pair_steps import (
    ITERATIONS,
    NEEDS_ROW,
    PAUSED,
    WANTED,
    all_flags,
    pair_steps,
)
from app.ml.numerics.support_vectors.kernel_rows import KernelRows
from app.ml.numerics.support_vectors.row_cache import RowCache

PERIOD = 1000
"""Steps between two looks at which coefficients stay at a bound."""
SHRINK = 0.9
"""Share of the places that remain at most when others are left out; else it is not worth the while."""
CURVATURE = 1e-12
"""Least curvature of a step, as a share of the largest kernel value of a row with itself."""
TIGHTER = 0.1
"""Factor of the tolerance where the gap is not closed yet."""
ROUNDING = 1e-13
"""Residuals that differ by this share of their size are equal but for rounding."""
UNREACHABLE = 2e-15
"""Share of their size below which no step brings residuals nearer to each other."""


class Problem(NamedTuple):
    """The programme; arrays of shape (n,)."""

    linear: Vector
    """z."""
    lower: Vector
    upper: Vector
    start: Vector
    """β within its bounds, whose sum stays."""
    epsilon: float = 0.0
    negligible: float = 0.0
    """Size of an objective that is as good as 0: the gap is measured by no less."""

    def share(self, gap: float, objective: float) -> float:
        """The gap as a share of the objective."""
        size = max(abs(objective), self.negligible)
        return 0.0 if gap <= 0 else gap / size if size > 0 else math.inf


class Solution(NamedTuple):
    """The minimum, as far as it was found."""

    coef: Vector
    """(n,) β."""
    residual: Vector
    """(n,) z − Kβ."""
    intercept: float
    """b: the mean of the free residuals, less ε in the direction of their coefficients."""
    objective: float
    """Value of the programme."""
    gap: float
    """Duality gap: no β has an objective lower by more."""
    iterations: int
    converged: bool

    def converged_to(self, problem: Problem, tol: float) -> bool:
        """True if no pair of coefficients violates the conditions by more than `tol`, and the gap is closed."""
        best, lowest = edges_of(problem, self.coef, self.residual)
        return best - lowest <= tol and problem.share(self.gap, self.objective) <= tol


class Settings(NamedTuple):
    """Settings of a solution."""

    tol: float
    cache_size: float
    """Mebibytes of kernel rows."""
    max_iter: int


def _never(_: Solution) -> bool:
    return False


def solve(
    rows: KernelRows, problem: Problem, settings: Settings, stop: Callable[[Solution], bool] = _never
) -> Solution:
    """The minimum. stop: ends the steps early, given what was found so far; it is looked at now and then."""
    return _Run(rows, problem, settings).run(stop)


class _Run:
    """An optimisation under way. Places are those of the coefficients not left out."""

    def __init__(self, rows: KernelRows, problem: Problem, settings: Settings) -> None:
        self._all_rows, self._problem, self._settings = rows, problem, settings
        self._diagonal = rows.diagonal
        n = problem.linear.size
        self._coef = problem.start.copy()
        moved = np.flatnonzero(self._coef)
        self._residual = problem.linear.copy()
        if moved.size:
            self._residual -= rows.products(np.arange(n), moved, self._coef[moved])
        self._known = self._residual.copy(), self._coef.copy()
        self._tiny = CURVATURE * max(float(self._diagonal.max(initial=0.0)), 0.0) or 1.0
        self._counts, self._edges = np.zeros(3, np.intp), np.zeros(2)
        self._cache = RowCache(rows, n, settings.cache_size)
        self._tol = settings.tol
        self._look(np.arange(n))

    def _look(self, active: Labels) -> None:
        """Go on with these coefficients."""
        self._active, p = active, self._problem
        self._r, self._b = self._residual[active], self._coef[active]
        self._lower, self._upper = p.lower[active], p.upper[active]
        self._own = np.ascontiguousarray(self._diagonal[active])
        self._up, self._low = np.empty((2, active.size))
        all_flags(self._b, self._lower, self._upper, p.epsilon, self._up, self._low)

    def run(self, stop: Callable[[Solution], bool]) -> Solution:
        n, most = self._coef.size, self._settings.max_iter
        period = min(max(n, 1), PERIOD)
        while True:
            status = self._steps(min(most, int(self._counts[ITERATIONS]) + period))
            self._keep()
            done = self._counts[ITERATIONS] >= most
            if status == PAUSED and not done:
                if not stop(self._solution(converged=False)):
                    self._shrink()
                    continue
                done = True
            if self._active.size < n:
                self._restore()
                if not done:
                    continue
            solution = self._solution(converged=status != PAUSED)
            if done or self._closed(solution):
                return solution
            self._tol *= TIGHTER

    def _steps(self, until: int) -> int:
        cache, tol = self._cache, max(self._tol, UNREACHABLE * self._size)
        while True:
            status = pair_steps(
                self._r,
                self._b,
                self._lower,
                self._upper,
                self._up,
                self._low,
                self._own,
                self._problem.epsilon,
                cache.values,
                cache.slots,
                cache.used,
                tol,
                self._tiny,
                until,
                self._counts,
                self._edges,
            )
            if status != NEEDS_ROW:
                return status
            cache.add(int(self._counts[WANTED]))

    def _keep(self) -> None:
        self._residual[self._active], self._coef[self._active] = self._r, self._b

    def _shrink(self) -> None:
        """Leave out coefficients at a bound that no step would move, or at 0 within ε."""
        best, lowest = self._edges
        rises = self._r + self._up >= lowest
        falls = self._r + self._low <= best
        movable = np.flatnonzero(rises | falls)
        if movable.size > SHRINK * self._active.size or movable.size < 2:
            return
        if self._active.size == self._coef.size:
            self._known = self._residual.copy(), self._coef.copy()
        active = self._active[movable]
        self._cache.narrow(self._all_rows.take(active), movable)
        self._look(active)

    def _restore(self) -> None:
        """Residuals of the coefficients left out, from the last time that all were known."""
        left = np.ones(self._coef.size, bool)
        left[self._active] = False
        out = np.flatnonzero(left)
        before, coef = self._known
        change = self._coef - coef
        moved = np.flatnonzero(change)
        self._residual[out] = before[out] - self._all_rows.products(out, moved, change[moved])
        self._known = self._residual.copy(), self._coef.copy()
        self._cache.restart(self._all_rows, self._coef.size)
        self._look(np.arange(self._coef.size))

    def _closed(self, solution: Solution) -> bool:
        closed = self._problem.share(solution.gap, solution.objective) <= self._settings.tol
        return closed or self._tol <= ROUNDING * self._size

    @property
    def _size(self) -> float:
        """Size of the numbers that residuals are sums of."""
        return float(np.abs(self._residual).max(initial=0.0) + np.abs(self._problem.linear).max(initial=0.0))

    def _solution(self, *, converged: bool) -> Solution:
        solution = solution_of(self._problem, self._coef, self._residual, int(self._counts[ITERATIONS]))
        return solution._replace(converged=converged)


def solution_of(problem: Problem, coef: Vector, residual: Vector, iterations: int) -> Solution:
    """Intercept, objective and gap of coefficients (n,) and their residuals (n,)."""
    p, r = problem, residual
    penalty = p.epsilon * np.abs(coef)
    b = intercept(p, coef, r)
    residual_of_plane = r - b
    over, under = np.maximum(residual_of_plane - p.epsilon, 0), np.maximum(-residual_of_plane - p.epsilon, 0)
    hard_over, hard_under = np.isinf(p.upper), np.isinf(p.lower)
    loss = np.where(hard_over, 0.0, p.upper) * over - np.where(hard_under, 0.0, p.lower) * under
    objective = float((-0.5 * coef * (r + p.linear) + penalty).sum())
    gap = float((loss - coef * residual_of_plane + penalty).sum())
    worst = max(over[hard_over].max(initial=0.0), under[hard_under].max(initial=0.0))
    if worst > 0:  # the longer w that violates no hard bound
        square = float(coef @ (p.linear - r))
        gap += 0.5 * square * ((1 - worst) ** -2.0 - 1) if worst < 1 else math.inf
    return Solution(coef, r, b, objective, gap, iterations, converged=False)


def balanced(problem: Problem, solution: Solution, tol: float) -> bool:
    """True if Σ β is 0: what is left of it, times the largest z, is less than `tol` of the objective."""
    left = abs(float(solution.coef.sum())) * float(np.abs(problem.linear).max())
    return problem.share(left, solution.objective) <= tol


def edges_of(problem: Problem, coef: Vector, residual: Vector) -> tuple[float, float]:
    """The highest residual whose coefficient may rise, and the least whose may fall."""
    up, low = np.empty((2, coef.size))
    all_flags(coef, problem.lower, problem.upper, problem.epsilon, up, low)
    return float((residual + up).max()), float((residual + low).min())


def intercept(problem: Problem, coef: Vector, residual: Vector) -> float:
    """The mean over free coefficients; without any, the middle of where it may lie."""
    up, low = np.empty((2, coef.size))
    all_flags(coef, problem.lower, problem.upper, problem.epsilon, up, low)
    free = up == low
    if free.any():
        return float((residual + up)[free].mean())
    best, lowest = edges_of(problem, coef, residual)
    if math.isinf(best) or math.isinf(lowest):
        return lowest if math.isinf(best) else best
    return (best + lowest) / 2
