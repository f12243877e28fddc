"""The normal equations of least squares, by blocks of rows that stay in cache; no copy of the table is made.

References: Chan, Golub & LeVeque (1983), The American Statistician 37:242 (sums about a shift); Björck (1987), Linear
Algebra and its Applications 88/89:31 (one correction with the residuals of the data: as accurate as QR while eps·κ²
is small).
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector

BLOCK = 1024
"""Rows worked on at a time."""
SAMPLE = 256
"""Number of rows that show where the columns lie."""
SMALL = 20_000
"""Numbers in a table up to which residuals are found with all the digits the processor has (mostly 64 bits, not 53)."""
NEAR = 1e3
"""A shift is near the mean if the squares about it are at most this many times those about the mean: three digits."""
SINGULAR = 1e-10
"""Reciprocal condition number of the equations below which they are not to be trusted."""


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


def normal_equations(x: Matrix, y: Matrix, weights: Vector, *, intercept: bool) -> NormalEquations:
    """x: (n, d); y: (n, k); weights: (n,) positive. About the weighted means if there is an intercept, else about 0."""
    d = x.shape[1]
    shift = _near_the_mean(x, y) if intercept else np.zeros(d + y.shape[1])
    gram, total = _sums(x, y, weights, shift)
    if not intercept:
        return NormalEquations(gram[:d, :d], gram[:d, d:], shift[:d], shift[d:])
    move = total / weights.sum()
    centred = gram - np.outer(total, move)
    if (gram.diagonal() > NEAR * np.maximum(centred.diagonal(), 0)).any():
        shift = shift + move
        gram, total = _sums(x, y, weights, shift)
        move = total / weights.sum()
        centred = gram - np.outer(total, move)
    centred.flat[:: len(centred) + 1] = np.maximum(centred.diagonal(), 0)
    mean = shift + move
    return NormalEquations(centred[:d, :d], centred[:d, d:], mean[:d], mean[d:])


def solve_normal(x: Matrix, y: Matrix, weights: Vector, equations: NormalEquations, penalty: float) -> Corrected | None:
    """Minimise Σ wᵢ‖yᵢ − xᵢβ‖² + penalty‖β‖², inputs and targets less their means.

    By Cholesky, corrected once with the residuals of the data. None where the equations are not to be trusted.
    """
    gram, cross, *_ = equations
    shifted = gram + penalty * np.eye(len(gram))
    # Unit diagonal: nearly the best scaling there is (van der Sluis 1969).
    scale = np.sqrt(shifted.diagonal())
    if not (scale.all() and np.isfinite(scale).all()):
        return None
    system = shifted / scale / scale[:, None]
    factor, failed = scipy.linalg.lapack.dpotrf(system, lower=True)
    if failed or scipy.linalg.lapack.dpocon(factor, np.abs(system).sum(axis=0).max(), uplo="L")[0] < SINGULAR:
        return None

    def solve(right: Matrix) -> Matrix:
        solution: Matrix = scipy.linalg.cho_solve((factor, True), right / scale[:, None])
        return solution / scale[:, None]

    coef = solve(cross)
    gradient, square = _residuals(x, y, weights, equations, coef)
    step = solve(gradient - penalty * coef)
    coef += step
    change = 2 * (step * gradient).sum(axis=0) - (step * (gram @ step)).sum(axis=0)
    if (np.abs(change) > 1e-6 * square).any():  # nearly nothing is left: rounding of the first solution shows
        return Corrected(coef, _residuals(x, y, weights, equations, coef)[1])
    return Corrected(coef, square - change)


def _near_the_mean(x: Matrix, y: Matrix) -> Vector:
    """(d + k,) means of a few rows; where these are all alike the value itself: a constant leaves exact zeros."""
    rows = slice(None, None, -(-len(x) // SAMPLE))
    sample = np.concatenate([x[rows], y[rows]], axis=1)
    alike = (sample == sample[0]).all(axis=0)
    return np.asarray(np.where(alike, sample[0], sample.mean(axis=0)))


def _sums(x: Matrix, y: Matrix, weights: Vector, shift: Vector) -> tuple[Matrix, Vector]:
    """Weighted sums of the products (d + k, d + k), and of the values (d + k,), of both matrices less the shift."""
    d = x.shape[1]
    even = bool((weights == 1).all())
    buffer = np.empty((min(BLOCK, len(x)), len(shift)))
    gram, total = np.zeros((len(shift), len(shift))), np.zeros(len(shift))
    for rows in _blocks(len(x)):
        part = buffer[: rows.stop - rows.start]
        np.subtract(x[rows], shift[:d], out=part[:, :d])
        np.subtract(y[rows], shift[d:], out=part[:, d:])
        root = np.sqrt(weights[rows])
        if not even:
            part *= root[:, None]
        gram += part.T @ part
        total += root @ part
    return gram, total


def _residuals(
    x: Matrix, y: Matrix, weights: Vector, equations: NormalEquations, coef: Matrix
) -> tuple[Matrix, Vector]:
    """Half the descent (d, k) of the sum of squares at coef, and the sums (k,)."""
    gram, _, mean, middle = equations
    small = x.size <= SMALL
    close = not small and bool((mean**2 * weights.sum() <= gram.diagonal()).all())  # centring afterwards is as good
    constant = middle - mean @ coef if close else middle
    gradient, left, square = np.zeros_like(coef), np.zeros(len(middle)), np.zeros(len(middle))
    for rows in _blocks(len(x)):
        part = x[rows] if close else x[rows] - mean
        part = part.astype(np.longdouble) if small else part
        residual = y[rows] - constant - part @ coef
        weighted = weights[rows, None] * residual
        gradient += part.T @ weighted
        left += weighted.sum(axis=0)
        square += (weighted * residual).sum(axis=0)
    return gradient - np.outer(mean, left) if close else gradient, square


def _blocks(rows: int) -> Iterator[slice]:
    return (slice(start, min(start + BLOCK, rows)) for start in range(0, rows, BLOCK))
