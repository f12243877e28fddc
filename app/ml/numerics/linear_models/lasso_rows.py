"""Lasso on rows: a path of penalties on a working set of columns, whose products alone are computed.

For each penalty the strong rule foretells the columns that may leave zero: those whose gradient was at least
2 · penalty − the one before. They join the working set, the problem is solved on it by `Moments`, and the gradient of
all columns shows which others have to join; where there are none, the minimum is that of all columns. The gap of each
fit is that of the whole problem, from its residuals.

Reference: Tibshirani, Bien, Friedman, Hastie, Simon, Taylor & Tibshirani (2012), J. Roy. Statist. Soc. B 74:245.
"""

from typing import Self

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.linear_algebra.solve import EPS
from app.ml.numerics.linear_models.lasso_path import Moments, Path

TIGHTER = 0.1
"""Factor of the tolerance where rounding keeps the gap of the whole problem above that on the working set."""
MIN_TOLERANCE_SHARE = 1e-3
"""Share of the tolerance below which it is not tightened."""


class LassoRows:
    """A `Problem` by its rows a (n, d) and b (n,)."""

    def __init__(self, a: Matrix, b: Vector) -> None:
        self._a, self._b, self._square = a, b, float(b @ b)
        self._product = b @ a

    @classmethod
    def of(cls, a: Matrix, b: Vector, weights: Vector) -> Self:
        """Each row counts by its weight."""
        root = np.sqrt(weights)
        return cls(a * root[:, None], b * root) if (weights != 1).any() else cls(a, b)

    @property
    def largest(self) -> float:
        return 2 * float(np.abs(self._product).max(initial=0.0))

    @property
    def columns(self) -> int:
        return len(self._product)

    def follow(self, penalties: Vector, start: Vector, tol: float, max_iter: int) -> Path:
        path = Path(
            np.zeros((len(penalties), len(start))), np.empty(len(penalties)), np.zeros(len(penalties), np.int64)
        )
        working = WorkingSet(self._a)
        working.add(np.flatnonzero(start))
        coef = start[working.columns]
        residual, pull = self._residual(working, coef)
        before = float(penalties[0])
        for k, penalty in enumerate(penalties.tolist()):
            working.add(np.flatnonzero(np.abs(pull) >= max(penalty - before / 2, 0.0)))  # halves: 2 · penalty − before
            gap, allowed = self._gap(penalty / 2, residual, pull, coef), tol
            while gap > tol and path.sweeps[k] < max_iter:
                moments = Moments(working.gram, self._product[working.columns], self._square)
                start_here = np.pad(coef, (0, len(working.columns) - len(coef)))
                step = moments.follow(np.array([penalty]), start_here, allowed, max_iter - int(path.sweeps[k]))
                coef = step.coefs[0]
                path.sweeps[k] += step.sweeps[0]
                residual, pull = self._residual(working, coef)
                gap = self._gap(penalty / 2, residual, pull, coef)
                if not working.add(np.flatnonzero(np.abs(pull) > penalty / 2)):
                    allowed *= TIGHTER
                    if allowed < MIN_TOLERANCE_SHARE * tol:
                        break
            path.coefs[k, working.columns[: len(coef)]] = coef
            path.gaps[k], before = gap, penalty
        return path

    def _residual(self, working: "WorkingSet", coef: Vector) -> tuple[Vector, Vector]:
        """The residual b − aβ, and half the negative gradient of the squares by all coefficients."""
        residual = self._b - coef @ working.rows[: len(coef)]
        return residual, residual @ self._a

    def _gap(self, half: float, residual: Vector, pull: Vector, coef: Vector) -> float:
        """The gap of `lasso_path.relative_gap`, from the residual itself."""
        steepest, square = float(np.abs(pull).max(initial=0.0)), float(residual @ residual)
        shrink = 1.0 if steepest <= half else half / steepest
        objective = square + 2 * half * float(np.abs(coef).sum())
        bound = 2 * shrink * float(self._b @ residual) - shrink * shrink * square
        rounding = 8 * EPS * self._square
        return 0.0 if objective <= rounding else max(objective - bound - rounding, 0.0) / objective


class WorkingSet:
    """Some columns of a (n, d), in the order in which they joined, and their products."""

    def __init__(self, a: Matrix) -> None:
        self._a = a
        self._inside = np.zeros(a.shape[1], np.bool_)
        self.columns: Labels = np.zeros(0, np.int64)
        self.rows = np.zeros((0, len(a)))
        """(m, n) the columns, each in a row."""
        self.gram = np.zeros((0, 0))
        """(m, m)."""

    def add(self, columns: Labels) -> bool:
        """True if any of these is new."""
        new = columns[~self._inside[columns]]
        if not new.size:
            return False
        self._inside[new] = True
        rows = np.ascontiguousarray(self._a[:, new].T)
        across = self.rows @ rows.T
        self.gram = np.block([[self.gram, across], [across.T, rows @ rows.T]])
        self.rows = np.concatenate([self.rows, rows])
        self.columns = np.concatenate([self.columns, new])
        return True
