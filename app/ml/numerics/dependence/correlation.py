"""Correlation coefficients of two columns of numbers: Pearson's and Spearman's (LION 7.2).

    ρ = cov(X, Y) / (σ_X σ_Y)

lies in [−1, 1] and has no unit; a constant column has none. The test is that of independent columns, which is exact for
normal ones. The interval is normal on Fisher's scale atanh ρ. Its error follows from what each row does to ρ (the
infinitesimal jackknife), so that it holds for columns that are not normal; for normal ones it is Fisher's 1/√(n − 3).
Where it and the test disagree about 0, the more careful of them counts: the interval then reaches 0, or the p-value is
that of the interval.

Coverage of 95 % intervals in 2,000 simulations, ρ = 0.6:

| rows | normal | t₅ | log-normal |
|---|---|---|---|
| 30 | .92 | .90 | .81 |
| 100 | .94 | .93 | .84 |
| 1,000 | .94 | .94 | .91 |

Spearman's of normal columns: .96, .96, .95.

References: Fisher (1921), Metron 1:3; Efron (1982), The Jackknife, the Bootstrap and Other Resampling Plans, section 6;
Bonett & Wright (2000), Psychometrika 65:23, for the error of Spearman's.
"""

import math

import numpy as np
import scipy

from app.ml.contract.algorithm import Vector
from app.ml.numerics.dependence.dependence import CONFIDENCE, REACH, UNDEFINED, Dependence


def pearson(x: Vector, y: Vector) -> Dependence:
    """Correlation of two columns (n,)."""
    if x.size < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return UNDEFINED
    first, other = _standard(x), _standard(y)
    r = _within(float(first @ other) / x.size)
    pull = first * other - r / 2 * (first * first + other * other)
    return _tested(r, float(np.sqrt(np.mean(pull * pull))) / (1 - r * r) if abs(r) < 1 else math.nan, x.size)


def spearman(x: Vector, y: Vector) -> Dependence:
    """Correlation of the ranks of two columns (n,); equal values share the mean of their ranks."""
    if x.size < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return UNDEFINED
    r = _within(float(_standard(ranks(x)) @ _standard(ranks(y))) / x.size)
    return _tested(r, math.sqrt(1 + r * r / 2), x.size)


def ranks(x: Vector) -> Vector:
    """(n,) ranks from 1; equal values share their mean."""
    _, place, count = np.unique(x, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(count) - (count - 1) / 2)[place])


def _standard(x: Vector) -> Vector:
    """With mean 0 and mean square 1. Divided by the largest first: no square overflows."""
    centred = x - x.mean()
    centred = centred / np.abs(centred).max()
    return np.asarray(centred / np.sqrt(np.mean(centred * centred)))


def _within(r: float) -> float:
    return min(1.0, max(-1.0, r))


def _tested(r: float, error: float, n: int) -> Dependence:
    """error: √n times the standard error of atanh r."""
    p = float(scipy.special.betainc(n / 2 - 1, 0.5, (1 - r) * (1 + r))) if n > 2 else 1.0
    if n < 4 or abs(r) >= 1 or not math.isfinite(error):
        return Dependence(r, p_value=p)
    z, spread = math.atanh(r), error / math.sqrt(n - 3)
    lower, upper = np.tanh(z + np.array([-1, 1]) * REACH * spread)
    if p >= 1 - CONFIDENCE:
        lower, upper = min(lower, 0.0), max(upper, 0.0)
    elif lower <= 0 <= upper:
        p = 2 * float(scipy.special.ndtr(-abs(z) / spread))
    return Dependence(r, float(lower), float(upper), p)
