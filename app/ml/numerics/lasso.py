"""Least squares with a penalty on absolute coefficients: cyclic coordinate descent on the normal equations.

Reference: Friedman, Hastie & Tibshirani (2010), J. Stat. Softw. 33(1).
"""

from typing import NamedTuple

import numpy as np
import scipy

from app.ml.contract import Labels, Matrix, Vector
from app.ml.numerics.linalg import EPS

SWEEPS = 2
"""Rounds of coordinate descent between two tries of solving for the coefficients that are not zero."""


class Moments(NamedTuple):
    """All that the fit needs of a (n, d) and b (n,)."""

    gram: Matrix
    """aᵀa."""
    product: Vector
    """aᵀb."""
    square: float
    """bᵀb."""

    @property
    def largest(self) -> float:
        """The penalty from which on all coefficients are zero."""
        return 2 * float(np.abs(self.product).max(initial=0.0))


class Point(NamedTuple):
    coef: Vector
    gap: float
    """Duality gap as a share of the objective: how far above the minimum it can be."""
    sweeps: int


def solve_lasso(moments: Moments, penalty: float, start: Vector, tol: float, max_iter: int) -> Point:
    """Minimise ‖b − aβ‖² + penalty‖β‖₁ from a first guess β (d,), until the gap is below `tol` or `max_iter` sweeps.

    Coordinates that are not zero are cycled over; the others enter where the gradient says that it pays.
    """
    coef, gap = start.copy(), relative_gap(moments, penalty, start)
    sweeps = 0
    while gap > tol and sweeps < max_iter:
        gradient = moments.product - moments.gram @ coef
        active = np.flatnonzero((coef != 0) | (np.abs(gradient) > penalty / 2))
        for _ in range(SWEEPS):
            _sweep(moments, penalty / 2, coef, gradient, active)
        sweeps += SWEEPS
        solved = _polished(moments, penalty / 2, coef)
        gap = relative_gap(moments, penalty, coef)
        if solved is not None and (better := relative_gap(moments, penalty, solved)) <= gap:
            coef, gap = solved, better
    return Point(coef, gap, sweeps)


def relative_gap(moments: Moments, penalty: float, coef: Vector) -> float:
    """Between the objective and the best lower bound that the residual gives, as a share of the objective."""
    pull = moments.product - moments.gram @ coef
    fitted = float(moments.product @ coef)
    square = max(moments.square - fitted - float(pull @ coef), 0.0)
    steepest = float(np.abs(pull).max(initial=0.0))
    shrink = 1.0 if steepest <= penalty / 2 else penalty / 2 / steepest
    objective = square + penalty * float(np.abs(coef).sum())
    bound = 2 * shrink * (moments.square - fitted) - shrink**2 * square
    rounding = 8 * EPS * moments.square
    return 0.0 if objective <= rounding else max(objective - bound - rounding, 0.0) / objective


def _sweep(moments: Moments, threshold: float, coef: Vector, gradient: Vector, active: Labels) -> None:
    """One round of exact minimisation along each coordinate; `coef` and `gradient` change in place."""
    for j in active:
        curvature = moments.gram[j, j]
        if curvature == 0:
            continue
        alone = gradient[j] + curvature * coef[j]
        new = np.sign(alone) * max(abs(alone) - threshold, 0.0) / curvature
        if new != coef[j]:
            gradient -= moments.gram[j] * (new - coef[j])
            coef[j] = new


def _polished(moments: Moments, threshold: float, coef: Vector) -> Vector | None:
    """The minimum if these coefficients keep their signs and the others stay zero; None if they do not."""
    active, signs = np.flatnonzero(coef), np.sign(coef)
    if not active.size:
        return None
    system = moments.gram[np.ix_(active, active)]
    scale = np.sqrt(system.diagonal())
    right = (moments.product - threshold * signs)[active]
    _, found, failed = scipy.linalg.lapack.dposv(system / scale / scale[:, None], right / scale)
    if failed or (np.sign(found) != signs[active]).any():
        return None
    solved = np.zeros_like(coef)
    solved[active] = found / scale
    return solved
