"""Bounds of ratios of sums, as means of positive values are, by the studentised bootstrap of their logarithms.

With sums a_u and b_u of independent units u, which are rows or groups of rows, the logarithm L of A/B, A = Σa_u and
B = Σb_u, has the standard error s, s² = Σ (a_u/A − b_u/B)² (the infinitesimal jackknife). Of every draw of units the
same are L* and s*, and the quantiles of (L* − L)/s* take the place of Student's t. Errors of a ratio grow with it, and
the logarithm keeps its bounds positive; studentising corrects for skewness, which percentiles do not.

Quantiles are never closer to 0 than those of Student's t, nor further than `MAX_QUANTILE`: draws of a few units that
are nearly alike have a standard error near 0. Where one unit dominates s², the variance of the units may be infinite,
and the largest of them are rarer than any sample shows: the upper end then reaches up to 1 + `UPPER_ARM_GROWTH` times
as far.

References: Hall (1988), Annals of Statistics 16:927, and Efron & Tibshirani (1993), An Introduction to the Bootstrap,
ch. 12, for the studentised bootstrap; Efron (1982), The Jackknife, the Bootstrap and Other Resampling Plans, ch. 6.
"""

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.statistics.intervals import CONFIDENCE, MIN_REPLICATES, Bounds

MAX_QUANTILE = 10.0
"""Largest quantile of a studentised draw."""
UPPER_ARM_GROWTH = 2.0
"""Growth of the upper arm where one unit dominates the variance."""
DOMINANT = 0.15, 0.35
"""Shares of the largest unit in the variance, from which and up to which the upper arm grows."""


def log_ratio(above: Vector, below: Vector, counts: Matrix, confidence: float = CONFIDENCE) -> Bounds | None:
    """Bounds of log(Σabove/Σbelow) of sums of units (m,) that are not negative.

    counts: (draws, m) how often each draw takes each unit. None where sums are 0 or infinite, units are alike, or too
    few draws are defined.
    """
    m, a, b = above.size, above.sum(), below.sum()
    if m < 2 or not (0 < a < np.inf and 0 < b < np.inf):
        return None
    parts, bases = above / a, below / b
    pulls = parts - bases
    error = np.sqrt(pulls @ pulls)
    if not error > 1e-12:
        return None
    t = _studentised(parts, bases, counts)
    if t.size < MIN_REPLICATES:
        return None
    tail = (1 - confidence) / 2
    nearest = np.sqrt(m / (m - 1)) * scipy.special.stdtrit(m - 1, 1 - tail)
    low, high = np.quantile(t, [tail, 1 - tail])
    wide = 1 + UPPER_ARM_GROWTH * _dominance(pulls)
    centre = np.log(a) - np.log(b)
    return Bounds(
        float(centre - error * np.clip(high, nearest, MAX_QUANTILE)),
        float(centre + error * np.clip(-low * wide, nearest, MAX_QUANTILE)),
    )


def _studentised(parts: Vector, bases: Vector, counts: Matrix) -> Vector:
    """(L* − L)/s* of the draws where it is defined."""
    above, below = counts @ parts, counts @ bases
    there = (above > 0) & (below > 0)
    squares, crossed, below_squares = (counts[there] @ each for each in (parts**2, parts * bases, bases**2))
    above, below = above[there], below[there]
    variance = squares / above**2 - 2 * crossed / (above * below) + below_squares / below**2
    spread = variance > 1e-12 * (squares / above**2 + below_squares / below**2)
    return np.asarray(np.log(above[spread] / below[spread]) / np.sqrt(variance[spread]))


def _dominance(pulls: Vector) -> float:
    """0 to 1, by the share of the largest unit in the variance."""
    low, high = DOMINANT
    return float(np.clip((pulls.max() ** 2 / (pulls @ pulls) - low) / (high - low), 0, 1))
