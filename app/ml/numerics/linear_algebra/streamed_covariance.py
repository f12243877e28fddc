"""Covariances of the columns of a table that memory does not hold, by merging those of its blocks.

Reference: Chan, Golub & LeVeque (1983), The American Statistician 37:242.
"""

import numpy as np

from app.ml.contract.algorithm import StreamedRows, Vector
from app.ml.numerics.linear_algebra.covariance import Covariance, covariance, noise_of


def streamed_covariance(rows: StreamedRows) -> Covariance:
    """Covariances and means of all rows, in one pass; a second one where a column may be constant but for rounding."""
    mean, scatter, whole = np.zeros(0), np.zeros((0, 0)), 0.0
    for x, weights in rows:
        block_covariance, mass = covariance(x, weights), float(weights.sum())
        if not whole:
            mean, scatter, whole = block_covariance.mean, block_covariance.matrix * mass, mass
            continue
        gap, total = block_covariance.mean - mean, whole + mass
        scatter += block_covariance.matrix * mass + np.outer(gap, gap) * (whole * mass / total)
        mean, whole = mean + gap * (mass / total), total
    return _without_constants(rows, Covariance(scatter / whole, mean))


def _without_constants(rows: StreamedRows, covariance_: Covariance) -> Covariance:
    """Columns that vary by rounding alone are set to zero."""
    noise = noise_of(covariance_.mean, rows.rows)
    small = covariance_.matrix.diagonal() <= np.square(noise)
    if small.any() and covariance_.matrix.diagonal()[small].any():
        constant = np.flatnonzero(small & (_farthest(rows, covariance_.mean) <= noise))
        covariance_.matrix[constant], covariance_.matrix[:, constant] = 0.0, 0.0
    return covariance_


def _farthest(rows: StreamedRows, mean: Vector) -> Vector:
    """(d,) largest distance of each column from its mean."""
    far = np.zeros_like(mean)
    for x, _ in rows:
        np.maximum(far, np.abs(x - mean).max(axis=0), out=far)
    return far
