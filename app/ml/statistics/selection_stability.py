"""Stability of a selection of columns over samples of the rows.

Φ = 1 − (mean variance of the columns' indicators) / (that of as many columns drawn at random),

1 where every sample selects the same columns, 0 where the selections agree no more than random ones. It is defined
unless nothing or everything is selected always. The interval is normal, with the error of the samples taken for
independent.

Reference: Nogueira, Sechidis & Brown (2018), J. Mach. Learn. Res. 18(174), definition 4 and theorem 8.
"""

import math

import numpy as np
from numpy.typing import NDArray

from app.ml.statistics.intervals import Bounds
from app.ml.statistics.metric_value import Metric, metric

REACH = 1.959963984540054
"""Standard deviations that hold 95 % of a normal law."""


def selection_stability(selected: NDArray[np.bool_]) -> Metric:
    """Φ of the columns selected (m, d) in each of m ≥ 2 samples."""
    samples, d = selected.shape
    z = selected.astype(np.float64)
    share, size = z.mean(axis=0), z.sum(axis=1)
    mean = float(size.mean())
    chance = mean / d * (1 - mean / d)
    if samples < 2 or chance <= 0:
        return metric("selection_stability", math.nan, None, "", n=samples, label=None)
    value = 1 - float((samples / (samples - 1) * share * (1 - share)).mean()) / chance
    influences = (
        z @ share / d - size * mean / d**2 - value / 2 * (2 * size * mean / d**2 - size / d - mean / d + 1)
    ) / chance
    reach = REACH * 2 / samples * math.sqrt(float(((influences - influences.mean()) ** 2).sum()))
    bounds = Bounds(value - reach, min(1.0, value + reach))
    return metric("selection_stability", value, bounds, "normal (approximate)", n=samples, label=None)
