"""The normal equations of least squares, by blocks of rows that stay in cache; no copy of the table is made.

References: Chan, Golub & LeVeque (1983), The American Statistician 37:242 (sums about a shift); Björck (1987), Linear
Algebra and its Applications 88/89:31 (one correction with the residuals of the data: as accurate as QR while eps·κ²
is small).
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.linear_algebra.positive_system import Factored
from app.ml.numerics.row_blocks import summed

BLOCK = 1024
"""Rows worked on at a time."""
BLOCK_NUMBERS = 32_768
"""Numbers worked on at a time where there are few columns."""
SAMPLE = 256
"""Number of rows that show where the columns lie."""
MAX_EXTENDED_CELLS = 20_000
"""Numbers in a table up to which residuals are found with all the digits the processor has (mostly 64 bits, not 53)."""
MAX_SHIFT_RATIO = 1e3
"""A shift is near the mean if the squares about it are at most this many times those about the mean: three digits."""


Residuals: TypeAlias = Callable[[Matrix], tuple[Matrix, Vector]]


class NormalEquations(NamedTuple):
    gram: Matrix
    """(d, d): Σ wᵢ(xᵢ − mean)(xᵢ − mean)ᵀ."""
    cross: Matrix
    """(d, k): the same of inputs and targets."""
    mean: Vector
    """(d,) of the inputs; zero without an intercept."""
    middle: Vector
    """(k,) of the targets, likewise."""


class Corrected(NamedTuple):
    coef: Matrix
    """(d, k)."""
    square: Vector
    """(k,) weighted sums of squared residuals."""
    system: Factored


def normal_equations(x: Matrix, y: Matrix, weights: Vector, *, intercept: bool) -> NormalEquations:
    """x: (n, d); y: (n, k); weights: (n,) positive. About the weighted means if there is an intercept, else about 0."""
    d = x.shape[1]
    shift = _near_the_mean(x, y) if intercept else np.zeros(d + y.shape[1])
    gram, total = _sums(x, y, weights, shift)
    if not intercept:
        return NormalEquations(gram[:d, :d], gram[:d, d:], shift[:d], shift[d:])
    move = total / weights.sum()
    centred = gram - np.outer(total, move)
    if (gram.diagonal() > MAX_SHIFT_RATIO * np.maximum(centred.diagonal(), 0)).any():
        shift = shift + move
        gram, total = _sums(x, y, weights, shift)
        move = total / weights.sum()
        centred = gram - np.outer(total, move)
    centred.flat[:: len(centred) + 1] = np.maximum(centred.diagonal(), 0)
    mean = shift + move
    return NormalEquations(centred[:d, :d], centred[:d, d:], mean[:d], mean[d:])


def solve_normal(equations: NormalEquations, penalty: float, residuals: Residuals) -> Corrected | None:
    """Minimise Σ wᵢ‖yᵢ − xᵢβ‖² + penalty‖β‖², inputs and targets less their means.

    residuals: maps coefficients to half the descent (d, k) of the sums of squares, and these sums (k,).

    By Cholesky, corrected once with the residuals of the data. None where the equations are not to be trusted.
    """
    gram, cross, *_ = equations
    system = Factored.of(gram + penalty * np.eye(len(gram)) if penalty else gram)
    if system is None:
        return None
    coef = system.solve(cross)
    gradient, square = residuals(coef)
    step = system.solve(gradient - penalty * coef)
    coef += step
    change = 2 * (step * gradient).sum(axis=0) - (step * (gram @ step)).sum(axis=0)
    if (np.abs(change) > 1e-6 * square).any():  # nearly nothing is left: rounding of the first solution shows
        return Corrected(coef, residuals(coef)[1], system)
    return Corrected(coef, square - change, system)


def _near_the_mean(x: Matrix, y: Matrix) -> Vector:
    """(d + k,) means of a few rows, or 0 where these are nearer to 0 than to each other; where they are all alike the
    value itself: a constant leaves exact zeros.
    """
    rows = slice(None, None, -(-len(x) // SAMPLE))
    sample = np.concatenate([x[rows], y[rows]], axis=1)
    alike, mean = (sample == sample[0]).all(axis=0), sample.mean(axis=0)
    near_zero = np.abs(mean) <= sample.std(axis=0)
    return np.asarray(np.where(alike, sample[0], np.where(near_zero, 0.0, mean)))


def _sums(x: Matrix, y: Matrix, weights: Vector, shift: Vector) -> tuple[Matrix, Vector]:
    """Weighted sums of the products (d + k, d + k), and of the values (d + k,), of both matrices less the shift."""
    gram, total = summed(lambda rows: _part_sums(x[rows], y[rows], weights[rows], shift), len(x), len(shift))
    gram += np.triu(gram, 1).T
    return gram, total


def _part_sums(x: Matrix, y: Matrix, weights: Vector, shift: Vector) -> tuple[Matrix, Vector]:
    """The same of some rows, the products in the upper triangle; zeros are in the lower one."""
    d, m = x.shape[1], len(shift)
    even = bool((weights == 1).all())
    gram, total = np.zeros((m, m), order="F"), np.zeros(m)
    if even and x.size > MAX_EXTENDED_CELLS and not shift.any():
        gram[:d, :d] = scipy.linalg.blas.dsyrk(1.0, x.T)
        gram[:d, d:], gram[d:, d:] = x.T @ y, y.T @ y
        total = np.append(np.ones(len(x)) @ x, y.sum(axis=0))
    else:
        step = max(BLOCK, BLOCK_NUMBERS // m)
        buffer = np.empty((min(step, len(x)), m))
        for rows in _blocks(len(x), step):
            part = buffer[: rows.stop - rows.start]
            np.subtract(x[rows], shift[:d], out=part[:, :d])
            np.subtract(y[rows], shift[d:], out=part[:, d:])
            root = np.sqrt(weights[rows])
            if not even:
                part *= root[:, None]
            gram = scipy.linalg.blas.dsyrk(1.0, part.T, beta=1.0, c=gram, overwrite_c=True)
            total += root @ part
    return gram, total


def residuals_of_rows(
    x: Matrix, y: Matrix, weights: Vector, equations: NormalEquations, coef: Matrix
) -> tuple[Matrix, Vector]:
    """Half the descent (d, k) of the sum of squares at coef, and the sums (k,)."""
    gram, _, mean, middle = equations
    small = x.size <= MAX_EXTENDED_CELLS
    close = not small and bool((mean**2 * weights.sum() <= gram.diagonal()).all())  # centring afterwards is as good
    constant = middle - mean @ coef if close else middle

    def sums(section: slice) -> tuple[Matrix, Vector, Vector]:
        gradient, left, square = np.zeros_like(coef), np.zeros(len(middle)), np.zeros(len(middle))
        for rows in _blocks(section.stop, BLOCK, section.start):
            part = x[rows] if close else x[rows] - mean
            part = part.astype(np.longdouble) if small else part
            residual = y[rows] - constant - part @ coef
            weighted = weights[rows, None] * residual
            gradient += part.T @ weighted
            left += weighted.sum(axis=0)
            square += (weighted * residual).sum(axis=0)
        return gradient, left, square

    gradient, left, square = summed(sums, len(x), 1)
    return gradient - np.outer(mean, left) if close else gradient, square


def _blocks(stop: int, step: int = BLOCK, start: int = 0) -> Iterator[slice]:
    return (slice(first, min(first + step, stop)) for first in range(start, stop, step))
