"""Conditioning of inputs: condition numbers, rank, variance inflation (LION 4.7).

References: Belsley, Kuh & Welsch (1980), Regression Diagnostics, ch. 3; Marquardt (1970), Technometrics 12:591.
"""

from typing import NamedTuple

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.linear_algebra.normal_equations import BLOCK
from app.ml.numerics.linear_algebra.solve import EPS, centred


class Conditioning(NamedTuple):
    condition: float
    """Largest over smallest singular value of the columns as they are; infinite for dependent ones."""
    scaled: float
    """The same with columns of unit length, which no choice of units can change."""
    rank: int
    inflation: Vector
    """(d,) by how much dependence on the other columns multiplies the variance of each coefficient: 1/(1 − R²) of the
    column fitted by the others; 1 for a column on its own, infinite for one that the others make up, NaN for a
    constant one."""


def conditioning(x: Matrix, weights: Vector, *, intercept: bool = True) -> Conditioning:
    """Conditioning of inputs (n, d), d at least 1, with row weights (n,); with an intercept less their means."""
    triangle = _triangle(centred(x, weights).x if intercept else x, np.sqrt(weights))
    n, d = x.shape
    length = np.sqrt((triangle * triangle).sum(axis=0))
    moving = length > 0
    _, s, vt = scipy.linalg.svd(triangle / np.where(moving, length, 1.0), full_matrices=d > len(triangle))
    s = np.pad(s, (0, len(vt) - s.size))
    significant = s > max(n, d) * EPS * s[0]
    # A null direction touches the columns that make each other up; elsewhere it is rounding.
    entangled = (vt[~significant] ** 2).sum(axis=0) > np.sqrt(EPS)
    inflation = np.where(entangled, np.inf, ((vt[significant] / s[significant, None]) ** 2).sum(axis=0))
    rank = int(significant.sum())
    singular_values = scipy.linalg.svdvals(triangle)
    return Conditioning(
        float(singular_values[0] / singular_values[-1]) if rank == d and singular_values[-1] > 0 else float("inf"),
        float(s[0] / s[-1]) if rank == d else float("inf"),
        rank,
        np.where(moving, inflation, np.nan),
    )


def _triangle(a: Matrix, root: Vector) -> Matrix:
    """The triangular factor (min(n, d), d) of the rows of a (n, d), each times its root; by blocks of rows."""
    d = a.shape[1]
    triangle = np.zeros((0, d))
    step = max(BLOCK, d)
    for start in range(0, len(a), step):
        rows = slice(start, start + step)
        triangle = scipy.linalg.qr(np.vstack([triangle, a[rows] * root[rows, None]]), mode="r")[0][:d]
    return triangle
