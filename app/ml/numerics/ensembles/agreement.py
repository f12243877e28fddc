"""Limits of probabilities, and rejection by the two largest of a row: what committees and any classifier share.

All limits are inclusive: what is at its limit, or off by rounding, has reached it.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from app.ml.contract.algorithm import Matrix, Vector

ROUNDING = 1e-12
"""Tolerance of a limit: two of three votes are two thirds."""


def reaches(values: ArrayLike, limit: ArrayLike) -> NDArray[np.bool_]:
    """True where values are no less than the limit: the one rule of thresholds, bands, margins and costs."""
    return np.asarray(np.asarray(values) >= np.asarray(limit) - ROUNDING)


def accepted(
    probabilities: Matrix, min_probability: float | Vector = 0.0, min_margin: float = 0.0
) -> NDArray[np.bool_]:
    """(n,) true where the largest probability of (n, k) and its lead over the second reach their minima.

    min_probability: one number, or (k,) one for each class that may be the largest.
    """
    best = probabilities.argmax(axis=1)
    top = probabilities[np.arange(len(best)), best]
    least = np.resize(min_probability, probabilities.shape[1])[best]
    second = np.partition(probabilities, -2, axis=1)[:, -2] if probabilities.shape[1] > 1 else 0.0
    return reaches(top, least) & reaches(top - second, min_margin)
