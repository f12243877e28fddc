"""A measure of dependence with its interval and its test."""

import math
from typing import NamedTuple, Self

import numpy as np
import scipy

CONFIDENCE = 0.95
REACH = 1.959963984540054
"""Standard deviations that hold 95 % of a normal law."""


class Dependence(NamedTuple):
    """Measured dependence; NaN for what is not defined."""

    value: float
    lower: float = math.nan
    upper: float = math.nan
    """Ends of the interval with confidence 95 %."""
    p_value: float = math.nan
    """Probability of a value at least as extreme if there is no dependence."""

    @classmethod
    def of_information(cls, plain: float, bias: float, spread: float, n: int, p_value: float = math.nan) -> Self:
        """Information in nats less its bias, with the normal interval of the mean of n pointwise values.

        spread: their standard deviation. Nothing goes below 0. Near independence all pointwise values are near 0, and
        the test is the better guide.
        """
        value, reach = plain - bias, REACH * spread / math.sqrt(n)
        return cls(max(0.0, value), max(0.0, value - reach), max(0.0, value + reach), p_value)


UNDEFINED = Dependence(math.nan)


def noncentralities(f: float, above: float, below: float) -> tuple[float, float]:
    """Ends of the interval with confidence 95 % of the noncentrality of an F statistic, from 0 up."""
    tail = scipy.special.ndtr(-REACH)
    ends = (
        0.0 if scipy.special.fdtr(above, below, f) <= share else float(scipy.special.ncfdtrinc(above, below, share, f))
        for share in (1 - tail, tail)
    )
    return next(ends), next(ends)


def by_logit(share: float, error: float) -> tuple[float, float]:
    """Ends of the interval of a share in (0, 1) whose logit is normal; NaN without an error or at the ends."""
    if not (0 < share < 1 and error > 0):
        return math.nan, math.nan
    reach = REACH * error / (share * (1 - share))
    lower, upper = scipy.special.expit(scipy.special.logit(share) + np.array([-reach, reach]))
    return float(lower), float(upper)
