"""Offset and scale of columns: numbers are shifted and shrunk before they are summed, so that no digits are lost.

Reference: Chan, Golub & LeVeque (1983), The American Statistician 37:242.
"""

import math
from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import Matrix, Vector

MAX_MULTIPLIABLE = 1e100
"""Numbers no farther from zero, nor nearer than 1/MAX_MULTIPLIABLE, can be multiplied with each other and added up."""
MAX_SCALED = 1e100
"""Scales beyond which a value counts as no farther: its square, too, is a number."""
_EPS = float(np.finfo(float).eps)


class Spread(NamedTuple):
    """Moments of the numbers that are not NaN; all 0 when there are none."""

    low: float
    high: float
    mean: float
    deviation: float
    """Square root of the mean squared distance from the mean; 0 where the numbers differ by rounding only."""
    rows: int


def spread(values: Vector) -> Spread:
    """Moments of values (n,), NaN left out.

    >>> spread(np.array([1e9 + 1, 1e9 + 2, np.nan, 1e9 + 3])).deviation  # the square root of 2/3
    0.816496580927726
    """
    present = values[~np.isnan(values)]
    if not present.size:
        return Spread(0.0, 0.0, 0.0, 0.0, 0)
    low, high = float(present.min()), float(present.max())
    middle, half = low / 2 + high / 2, high / 2 - low / 2
    if half == 0.0:
        return Spread(low, high, low, 0.0, present.size)
    present -= middle
    present /= half
    mean = float(present.mean())
    present -= mean
    deviation = half * float(np.sqrt(np.mean(np.square(present, out=present))))
    return _without_rounding(Spread(low, high, middle + half * mean, deviation, present.size))


def merged(first: Spread, other: Spread) -> Spread:
    """Moments of the numbers of both.

    >>> halves = spread(np.array([1e9 + 1, np.nan])), spread(np.array([1e9 + 2, 1e9 + 3]))
    >>> round(merged(*halves).deviation, 12)  # the square root of 2/3
    0.816496580928
    """
    if not first.rows or not other.rows:
        return first if first.rows else other
    rows = first.rows + other.rows
    share, other_share = first.rows / rows, other.rows / rows
    half_gap = other.mean / 2 - first.mean / 2
    first_deviation, others = math.sqrt(share) * first.deviation, math.sqrt(other_share) * other.deviation
    deviation = math.hypot(first_deviation, others, 2 * math.sqrt(share * other_share) * half_gap)
    low, high = min(first.low, other.low), max(first.high, other.high)
    return _without_rounding(Spread(low, high, first.mean + 2 * (half_gap * other_share), deviation, rows))


def _without_rounding(spread: Spread) -> Spread:
    rounding = spread.deviation <= _EPS * max(abs(spread.low), abs(spread.high))
    return spread._replace(deviation=0.0) if rounding else spread


def standardised(x: Matrix, centre: Vector, scale: Vector) -> Matrix:
    """(x − centre)/scale of rows (n, d); a column of infinite scale becomes zero."""
    with np.errstate(over="ignore"):
        u = x - centre
        u /= scale
    return np.asarray(np.clip(u, -MAX_SCALED, MAX_SCALED, out=u))
