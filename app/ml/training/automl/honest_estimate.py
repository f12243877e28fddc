"""The metric of a choice among many candidates, free of what the choice itself flatters, without further fits.

Resamples of the rows choose the candidate that is best among the rows drawn, and evaluate it on the rows left out. The
variance is that of the resamples, enlarged as the fits share training rows.

Reference: Tsamardinos, Greasidou & Borboudakis (2018), Machine Learning 107:1895 (BBC-CV).
"""

import math

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix
from app.ml.evaluation.row_losses import metric_of
from app.ml.statistics.intervals import CONFIDENCE, Bounds
from app.ml.statistics.metric_value import Metric, metric

RESAMPLES = 200
VARIANCE_FACTOR = 1.2


def bias_corrected(name: str, losses: Matrix, seed: int) -> Metric:
    """The metric of the chosen one, with its interval. losses: (candidates, rows), the same rows of each."""
    rng, n = np.random.Generator(np.random.PCG64([seed, n_candidates := len(losses)])), losses.shape[1]
    values = []
    for _ in range(RESAMPLES):
        drawn = np.bincount(rng.integers(0, n, n), minlength=n)
        left_out = drawn == 0
        if not left_out.any():
            continue
        best = int((losses @ drawn).argmin()) if n_candidates > 1 else 0
        values.append(losses[best, left_out].mean())
    if not values:
        return metric(name, math.nan, None, "", n=n, label=None)
    mean = float(np.mean(values))
    chosen = losses[int(losses.mean(axis=1).argmin())]
    error = math.sqrt(VARIANCE_FACTOR * float(chosen.var(ddof=1)) / n) if n > 1 else math.nan
    reach = float(scipy.special.stdtrit(max(1, n - 1), (1 + CONFIDENCE) / 2)) * error
    low, middle, high = (metric_of(name, np.array([max(0.0, end)])) for end in (mean - reach, mean, mean + reach))
    return metric(name, middle, Bounds(min(low, high), max(low, high)), "student-t (approximate)", n=n, label=None)
