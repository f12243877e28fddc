"""Least squares with a penalty on absolute coefficients: cyclic coordinate descent on the normal equations, compiled.

Coordinates that are not zero are cycled over; the others enter where the gradient shows that it pays. As often as it
costs no more than the cycles, the equations of the coefficients that are not zero are solved: where their signs stay,
that is the minimum, however slowly the cycles would have come to it.

References: Friedman, Hastie & Tibshirani (2010), J. Stat. Softw. 33(1); Massias, Gramfort & Salmon (2018), Proc. Mach.
Learn. Res. 80:3315.
"""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.jit import inner, kernel, seldom
from app.ml.numerics.linear_algebra.solve import EPS

SWEEPS = 2
"""Rounds of coordinate descent between two looks at the gap."""


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

    @property
    def columns(self) -> int:
        return len(self.product)

    def follow(self, penalties: Vector, start: Vector, tol: float, max_iter: int) -> "Path":
        """The path, by `descend`; see `Problem`."""
        m, d = len(penalties), len(start)
        path = Path(np.empty((m, d)), np.empty(m), np.empty(m, np.int64))
        descend(*self, penalties / 2, start, tol, max_iter, *path)
        return path


class Path(NamedTuple):
    """The fits of m penalties."""

    coefs: NDArray[np.float64]
    """(m, d)."""
    gaps: NDArray[np.float64]
    """(m,) duality gaps as shares of the objective: how far above the minimum it can be."""
    sweeps: Labels
    """(m,)."""


class Problem(Protocol):
    """‖b − aβ‖² + penalty‖β‖₁ for a (n, d), in whatever form."""

    @property
    def largest(self) -> float:
        """The penalty from which on all coefficients are zero."""

    @property
    def columns(self) -> int:
        """Number of coefficients."""

    def follow(self, penalties: Vector, start: Vector, tol: float, max_iter: int) -> Path:
        """The minima for these penalties, each fit starting from the last, the first from `start` (d,).

        A fit ends when its gap is no more than `tol`, or after `max_iter` sweeps.
        """


@kernel(
    "void(f8[:,::1], f8[::1], f8, f8[::1], f8[::1], f8, i8, f8[:,::1], f8[::1], i8[::1])",
    writes=["coefs", "gaps", "sweeps"],
)
def descend(  # noqa: PLR0917 - a kernel takes its arguments by position
    gram: Matrix,
    product: Vector,
    square: float,
    halves: Vector,
    start: Vector,
    tol: float,
    max_iter: int,
    coefs: Matrix,
    gaps: Vector,
    sweeps: Labels,
) -> None:
    """`Moments.follow`, for halves of the penalties; the result goes into the last three arrays."""
    d = product.size
    coef, trial, pull = start.copy(), np.empty(d), np.empty(d)
    active = np.empty(d, np.int64)
    for place in range(halves.size):
        half = halves[place]
        left_over(gram, product, coef, pull)
        gap = relative_gap(product, square, half, coef, pull)
        done = since = 0
        while gap > tol and done < max_iter:
            count = entering(gram, half, coef, pull, active)
            for _ in range(SWEEPS):
                sweep(gram, half, coef, pull, active[:count])
            done += SWEEPS
            since += SWEEPS
            gap = relative_gap(product, square, half, coef, pull)
            if gap > tol and 6 * since * d >= count * count:  # |active|³/3 against |active|·2d for each sweep
                since = 0
                if polished(gram, product, half, coef, active, trial):
                    left_over(gram, product, trial, pull)
                    better = relative_gap(product, square, half, trial, pull)
                    if better <= gap:
                        coef[:] = trial
                        gap = better
                    else:
                        left_over(gram, product, coef, pull)
        coefs[place] = coef
        gaps[place] = gap
        sweeps[place] = done


@inner
def left_over(gram: Matrix, product: Vector, coef: Vector, pull: Vector) -> None:
    """Half the negative gradient of the squares: product − gram · coef."""
    for j in range(coef.size):
        pull[j] = product[j]
    for j in range(coef.size):
        if coef[j] != 0:
            for i in range(coef.size):
                pull[i] -= coef[j] * gram[j, i]


@inner
def relative_gap(product: Vector, square: float, half: float, coef: Vector, pull: Vector) -> float:
    """Between the objective and the best lower bound that the residual gives, as a share of the objective."""
    fitted = unexplained = steepest = size = 0.0
    for j in range(coef.size):
        fitted += product[j] * coef[j]
        unexplained += pull[j] * coef[j]
        size += abs(coef[j])
        steepest = max(steepest, abs(pull[j]))
    residual = max(square - fitted - unexplained, 0.0)
    shrink = 1.0 if steepest <= half else half / steepest
    objective = residual + 2 * half * size
    bound = 2 * shrink * (square - fitted) - shrink * shrink * residual
    rounding = 8 * EPS * square
    return 0.0 if objective <= rounding else max(objective - bound - rounding, 0.0) / objective


@inner
def entering(gram: Matrix, half: float, coef: Vector, pull: Vector, active: Labels) -> int:
    """Coefficients that are not zero, or would not stay so."""
    count = 0
    for j in range(coef.size):
        if gram[j, j] > 0 and (coef[j] != 0 or abs(pull[j]) > half):
            active[count] = j
            count += 1
    return count


@inner
def sweep(gram: Matrix, half: float, coef: Vector, pull: Vector, active: Labels) -> None:
    """One round of exact minimisation along each coordinate."""
    for j in active:
        curvature = gram[j, j]
        alone = pull[j] + curvature * coef[j]
        new = 0.0
        if alone > half:
            new = (alone - half) / curvature
        elif alone < -half:
            new = (alone + half) / curvature
        step = new - coef[j]
        if step != 0:
            coef[j] = new
            row = gram[j]
            for i in range(row.size):
                pull[i] -= step * row[i]


@seldom
def polished(  # noqa: PLR0917 - as `descend`
    gram: Matrix, product: Vector, half: float, coef: Vector, active: Labels, solved: Vector
) -> bool:
    """The minimum if these coefficients keep their signs and the others stay zero; False if they do not.

    `active` is overwritten.
    """
    count = 0
    for j in range(coef.size):
        solved[j] = 0.0
        if coef[j] != 0:
            active[count] = j
            count += 1
    system, right, scale = np.empty((count, count)), np.empty(count), np.empty(count)
    for a in range(count):
        scale[a] = np.sqrt(gram[active[a], active[a]])
    for a in range(count):
        j = active[a]
        right[a] = (product[j] - half * np.sign(coef[j])) / scale[a]
        for b in range(a, count):
            system[a, b] = gram[j, active[b]] / (scale[a] * scale[b])
    if count == 0 or not eliminated(system, right):
        return False
    for a in range(count):
        if right[a] * coef[active[a]] <= 0:
            return False
        solved[active[a]] = right[a] / scale[a]
    return True


@inner
def eliminated(system: Matrix, right: Vector) -> bool:
    """Solve for `right`, in place, by the upper triangle of a positive definite matrix of unit diagonal.

    Row by row, so that the innermost loops run along the memory. False if the matrix is singular.
    """
    m = right.size
    for a in range(m):
        if system[a, a] <= EPS * m:
            return False
        for b in range(a + 1, m):
            factor = system[a, b] / system[a, a]
            right[b] -= factor * right[a]
            upper, lower = system[a, b:], system[b, b:]
            for c in range(lower.size):
                lower[c] -= factor * upper[c]
    for a in range(m - 1, -1, -1):
        for b in range(a + 1, m):
            right[a] -= system[a, b] * right[b]
        right[a] /= system[a, a]
    return True
