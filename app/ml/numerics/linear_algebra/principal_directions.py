"""Principal directions of a cloud of rows."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, StreamedRows, Vector
from app.ml.numerics.linear_algebra.block_krylov import is_worth_it, largest_eigenpairs
from app.ml.numerics.linear_algebra.covariance import Covariance, covariance
from app.ml.numerics.linear_algebra.few_directions import (
    TRUSTED,
    TRUSTED_OF_ITERATION,
    few_directions,
    is_trusted,
    steps_before_forming,
)
from app.ml.numerics.linear_algebra.solve import EPS, centred
from app.ml.numerics.linear_algebra.streamed_covariance import streamed_covariance


class Spectrum(NamedTuple):
    mean: Vector
    """(d,) weighted means of the columns."""
    values: Vector
    """(m,) variances along the directions, descending, zero or more; m = min(n, d), or as many as were wanted."""
    directions: Matrix
    """(m, d) orthonormal rows, each with its largest entry positive."""
    total: float
    """Variance of all columns together."""


def principal(x: Matrix, weights: Vector, needed: Callable[[Vector], int] = len, count: int | None = None) -> Spectrum:
    """The spectrum of the covariance matrix of rows x (n, d) with weights (n,) of any sum.

    needed: the number of directions that will be used, from all variances. count: this number, where it is known
    before; then the result may hold these directions alone.

    With many more rows than columns, by the (d, d) covariance matrix in one pass over the rows. Squaring costs small
    eigenvalues half their digits, so when one that is needed is too small for that, and whenever rows are few,
    by the singular values of the centred rows; those that are only rounding are zero. Few of many directions are those
    of the largest eigenvalues of the smaller product of the centred rows with themselves.
    """
    n, d = x.shape
    few = count is not None and (d >= 3 * n > 3 * count or is_worth_it(min(n, d), count))
    if n >= 3 * d and not (few and count and steps_before_forming((n, d), count)):
        result = _by_covariance(covariance(x, weights), needed, count)
    else:
        result = _by_products(x, weights, count) if few and count else None
    return _by_singular_values(x, weights) if result is None else result


def streamed_principal(rows: StreamedRows, needed: Callable[[Vector], int] = len, count: int | None = None) -> Spectrum:
    """The same of rows that memory does not hold, in one pass, or two where small variances matter: the singular
    values are then those of the triangle of a QR decomposition, which takes in block after block.
    """
    whole = streamed_covariance(rows)
    spectrum = _by_covariance(whole, needed, count)
    spectrum = _by_triangle(rows, whole.mean) if spectrum is None else spectrum
    m = min(rows.rows, len(whole.mean))
    return Spectrum(spectrum.mean, spectrum.values[:m], spectrum.directions[:m], spectrum.total)


def _by_covariance(whole: Covariance, needed: Callable[[Vector], int], count: int | None) -> Spectrum | None:
    """None: a variance that is needed is too small for it."""
    matrix, total = whole.matrix, float(whole.matrix.trace())
    if not np.isfinite(matrix).all():
        return None
    if count and is_worth_it(len(matrix), count):
        pairs = largest_eigenpairs(lambda block: block @ matrix, len(matrix), count)
        if pairs and is_trusted(pairs, TRUSTED_OF_ITERATION):
            return Spectrum(whole.mean, pairs.values, signed(pairs.vectors), total)
    values, vectors = scipy.linalg.eigh(matrix, overwrite_a=True, check_finite=False)
    values = np.maximum(values[::-1], 0.0)
    if not values[needed(values) - 1] > TRUSTED * values[0]:
        return None
    return Spectrum(whole.mean, values, signed(vectors.T[::-1]), total)


def _by_triangle(rows: StreamedRows, mean: Vector) -> Spectrum:
    triangle, whole = np.zeros((0, len(mean))), 0.0
    for x, weights in rows:
        whole += weights.sum()
        scaled = (x - mean) * np.sqrt(weights)[:, None]
        (triangle,) = scipy.linalg.qr(np.vstack([triangle, scaled]), mode="r", overwrite_a=True, check_finite=False)
        triangle = triangle[: len(mean)]
    _, s, vt = scipy.linalg.svd(triangle / np.sqrt(whole), full_matrices=False, overwrite_a=True)
    s[s <= max(rows.rows, len(mean)) * EPS * s[0]] = 0.0
    return Spectrum(mean, s * s, signed(vt), float(s @ s))


def _by_products(x: Matrix, weights: Vector, count: int) -> Spectrum | None:
    """None: a variance that is needed is too small for it."""
    rows, mean = centred(x, weights)
    rows *= np.sqrt(weights / weights.sum())[:, None]
    pairs = few_directions(rows, count)
    return pairs and Spectrum(mean, pairs.values, signed(pairs.vectors), float(np.vdot(rows, rows)))


def _by_singular_values(x: Matrix, weights: Vector) -> Spectrum:
    rows, mean = centred(x, weights)
    rows *= np.sqrt(weights / weights.sum())[:, None]
    _, s, vt = scipy.linalg.svd(rows, full_matrices=False, overwrite_a=True)
    s[s <= max(x.shape) * EPS * s[0]] = 0.0
    return Spectrum(mean, s * s, signed(vt), float(s @ s))


def signed(directions: Matrix) -> Matrix:
    """A direction is the same backwards: let the largest entry (the first of equals) be positive."""
    size = np.abs(directions)
    # Entries equal but for rounding count as equal, or rounding would choose the sign.
    largest = (size >= size.max(axis=1, keepdims=True) * (1 - 1e-9)).argmax(axis=1)
    sign = np.sign(directions[np.arange(len(directions)), largest])
    return np.ascontiguousarray(directions * sign[:, None])
