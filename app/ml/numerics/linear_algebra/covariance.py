"""Covariances of the columns of a table, in one pass over the rows and without a copy of the table.

Rows are added up in blocks that stay in cache, each by one symmetric rank-k update of half the matrix. Sums about a
shift are moved to the means afterwards; the shift is zero where the columns are as near zero as they are wide, else the
mean of a few rows, else the mean itself, so that moving it costs no digits.

Reference: Chan, Golub & LeVeque (1983), The American Statistician 37:242.
"""

from typing import NamedTuple

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.row_blocks import summed

BLOCK = 1024
"""Rows worked on at a time."""
SAMPLE = 256
"""Number of rows that show where the columns lie."""
MAX_SHIFT_RATIO = 4.0
"""Squares about the shift may be this many times those about the mean: two bits of 53."""
EPS = float(np.finfo(np.float64).eps)


class Covariance(NamedTuple):
    matrix: Matrix
    """(d, d): Σ wᵢ(xᵢ − mean)(xᵢ − mean)ᵀ / Σ wᵢ; zero for a constant column."""
    mean: Vector
    """(d,) weighted."""


def covariance(x: Matrix, weights: Vector) -> Covariance:
    """x: (n, d), C-contiguous; weights: (n,) positive."""
    shift = _shift(x)
    covariance_ = _about(x, weights, shift)
    variance = covariance_.matrix.diagonal()
    if (variance + np.square(covariance_.mean - shift) > MAX_SHIFT_RATIO * variance).any():
        covariance_ = _about(x, weights, covariance_.mean)
    return _without_constants(x, covariance_)


def _shift(x: Matrix) -> Vector:
    """(d,) zero, or means of a few rows; where these are all alike the value itself: a constant leaves exact zeros."""
    sample = x[:: -(-len(x) // SAMPLE)]
    mean = np.where((sample == sample[0]).all(axis=0), sample[0], sample.mean(axis=0))
    near = np.square(mean) <= np.square(sample - mean).mean(axis=0)
    return np.zeros_like(mean) if near.all() else mean


def _about(x: Matrix, weights: Vector, shift: Vector) -> Covariance:
    """The covariances, by sums about the shift."""
    d, even = x.shape[1], bool((weights == weights[0]).all())
    share = weights / weights.sum()

    def sums(section: slice) -> tuple[Matrix, Vector]:
        gram, total = np.zeros((d, d), order="F"), np.zeros(d)
        buffer = np.empty((min(BLOCK, len(x)), d))
        for start in range(section.start, section.stop, BLOCK):
            block = slice(start, min(start + BLOCK, section.stop))
            rows = x[block]
            if shift.any():
                rows = np.subtract(rows, shift, out=buffer[: len(rows)])
            if even:
                total += rows.sum(axis=0)
            else:
                root = np.sqrt(share[block])
                rows = np.multiply(rows, root[:, None], out=buffer[: len(rows)])
                total += root @ rows
            gram = scipy.linalg.blas.dsyrk(1.0, rows.T, beta=1.0, c=gram, overwrite_c=True)
        return gram, total

    gram, total = summed(sums, len(x), d)
    if even:
        gram, total = gram / len(x), total / len(x)
    half = gram - np.outer(total, total)
    half.flat[:: d + 1] = np.maximum(half.diagonal(), 0)
    return Covariance(np.triu(half) + np.triu(half, 1).T, shift + total)


def _without_constants(x: Matrix, covariance_: Covariance) -> Covariance:
    """A constant column leaves rounding, a few units in the last place of its values: it is set to zero."""
    noise = noise_of(covariance_.mean, len(x))
    for j in np.flatnonzero(covariance_.matrix.diagonal() <= np.square(noise)):
        if np.abs(x[:, j] - covariance_.mean[j]).max() <= noise[j]:
            covariance_.matrix[j] = covariance_.matrix[:, j] = 0.0
    return covariance_


def noise_of(mean: Vector, rows: int) -> Vector:
    """(d,) what rounding may make of a constant column."""
    return np.asarray(4 * EPS * np.sqrt(rows) * np.abs(mean))
