"""Rank and condition number of columns from their products, to all digits for few columns and to two for many.

References: Higham (2002), Accuracy and Stability of Numerical Algorithms, ch. 10.3 (rank by Cholesky with pivots);
Lehoucq, Sorensen & Yang (1998), ARPACK Users' Guide.
"""

from collections.abc import Callable

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.linear_algebra.positive_system import EPS, Factored

EXACT_COLUMNS = 150
"""Columns up to which all eigenvalues are computed."""
KRYLOV_VECTORS = 12
"""Products with vectors before the iteration begins anew from the best of them."""
DEFINITE = 1e-3
"""Smallest eigenvalue, of columns of unit length, that single precision distinguishes from 0."""
TOLERANCE = 1e-2
"""Relative error at which the iteration for a single eigenvalue ends; in practice it has one or two digits more."""


def conditioning_of_products(gram: Matrix, system: Factored | None = None, penalty: float = 0.0) -> tuple[int, float]:
    """Rank and condition number of the columns (n, d), scaled to unit length, whose products (d, d) these are.

    system: the products plus the penalty on their diagonal, if it is factorised already. With a penalty it serves where
    that changes the smallest eigenvalue by less than the tolerance.
    """
    if len(gram) <= EXACT_COLUMNS:
        values = np.sqrt(np.maximum(scipy.linalg.eigvalsh(_of_unit_columns(gram))[::-1], 0))
        return conditioning(values, np.sqrt(len(gram) * EPS), len(gram))
    if system is not None:
        smallest, scale = 1 / _largest(system.solve_scaled, len(gram)), system.scale
        if penalty / scale.min() ** 2 <= TOLERANCE * smallest:
            largest = _largest(lambda x: gram @ (x / scale) / scale, len(gram))
            return len(gram), float(np.sqrt(largest / smallest))
    unit = _of_unit_columns(gram)
    factor, rank = _pivoted(unit)
    if rank < len(gram):
        return rank, float("inf")
    inverse = _largest(Factored(factor, np.ones(rank), 1.0).solve_scaled, rank)
    return rank, float(np.sqrt(_largest(lambda x: unit @ x, rank) * inverse))


def rank_of_products(gram: Matrix) -> int:
    """Number of independent rows or columns whose products (m, m) these are.

    In single precision if that is enough: where the matrix stays definite less a part of its diagonal beyond rounding.
    """
    if len(gram) <= EXACT_COLUMNS:
        return conditioning_of_products(gram)[0]
    unit = _of_unit_columns(gram)
    rough = unit.astype(np.float32)
    rough.flat[:: len(rough) + 1] -= np.float32(DEFINITE)
    _, failed = scipy.linalg.lapack.spotrf(rough.T, lower=True, overwrite_a=True, clean=False)
    return _pivoted(unit)[1] if failed else len(gram)


def conditioning(values: Vector, threshold: float, d: int) -> tuple[int, float]:
    """Rank and condition number from singular values in descending order."""
    rank = int((values > threshold * values.max(initial=0.0)).sum())
    return rank, float(values[0] / values[-1]) if rank == d and d > 0 else float("inf") if d > 0 else 1.0


def _of_unit_columns(gram: Matrix) -> Matrix:
    length = np.sqrt(gram.diagonal())
    unit = np.where(length > 0, length, 1.0)
    scaled = gram / unit
    scaled /= unit[:, None]
    return scaled


def _pivoted(unit: Matrix) -> tuple[Matrix, int]:
    """The Cholesky factor of the rows and columns in the order of the largest pivots, and their number."""
    factor, _, rank, _ = scipy.linalg.lapack.dpstrf(unit, tol=len(unit) * EPS, lower=True)
    return factor, int(rank)


def _largest(product: Callable[[Vector], Vector], d: int) -> float:
    """The largest eigenvalue of a symmetric matrix (d, d) by its products with vectors."""
    operator = scipy.sparse.linalg.LinearOperator((d, d), product, dtype=np.float64)
    start = np.cos(np.arange(d))
    try:
        (value,) = scipy.sparse.linalg.eigsh(
            operator, k=1, which="LA", ncv=KRYLOV_VECTORS, tol=TOLERANCE, v0=start, return_eigenvectors=False
        )
    except scipy.sparse.linalg.ArpackNoConvergence:
        return float(np.linalg.norm(operator @ start) / np.linalg.norm(start))
    return float(value)
