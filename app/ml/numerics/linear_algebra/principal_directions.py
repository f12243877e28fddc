"""Principal directions of a cloud of rows."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.linear_algebra.covariance import covariance
from app.ml.numerics.linear_algebra.solve import EPS, centred

TRUSTED = 1e-8
"""A covariance matrix holds every eigenvalue to one rounding of the largest: below this share few digits are left."""


class Spectrum(NamedTuple):
    mean: Vector
    """(d,) weighted means of the columns."""
    values: Vector
    """(m,) variances along the directions, descending, zero or more; m = min(n, d)."""
    directions: Matrix
    """(m, d) orthonormal rows, each with its largest entry positive."""


def principal(x: Matrix, weights: Vector, needed: Callable[[Vector], int] = len) -> Spectrum:
    """The spectrum of the covariance matrix of rows x (n, d) with weights (n,) of any sum.

    needed: given the variances, how many of the directions will be used.

    With many more rows than columns, by the (d, d) covariance matrix in one pass over the rows. Squaring costs small
    eigenvalues half their digits, so when one that is needed is too small for that, and whenever rows are few,
    by the singular values of the centred rows; those that are only rounding are zero.
    """
    n, d = x.shape
    if n >= 3 * d:
        matrix, mean = covariance(x, weights)
        if np.isfinite(matrix).all():
            values, vectors = scipy.linalg.eigh(matrix, overwrite_a=True, check_finite=False)
            values = np.maximum(values[::-1], 0.0)
            if values[needed(values) - 1] > TRUSTED * values[0]:
                return Spectrum(mean, values, signed(vectors.T[::-1]))
    return _by_singular_values(x, weights)


def _by_singular_values(x: Matrix, weights: Vector) -> Spectrum:
    rows, mean = centred(x, weights)
    rows *= np.sqrt(weights / weights.sum())[:, None]
    _, s, vt = scipy.linalg.svd(rows, full_matrices=False, overwrite_a=True)
    s[s <= max(x.shape) * EPS * s[0]] = 0.0
    return Spectrum(mean, s * s, signed(vt))


def signed(directions: Matrix) -> Matrix:
    """A direction is the same backwards: let the largest entry (the first of equals) be positive."""
    size = np.abs(directions)
    # Entries equal but for rounding count as equal, or rounding would choose the sign.
    largest = (size >= size.max(axis=1, keepdims=True) * (1 - 1e-9)).argmax(axis=1)
    sign = np.sign(directions[np.arange(len(directions)), largest])
    return np.ascontiguousarray(directions * sign[:, None])
