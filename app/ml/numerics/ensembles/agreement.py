"""Rejection by the two largest probabilities of a row: what a committee and the prediction of any classifier share.

A limit belongs to what it names: at the minimum a row is accepted.
"""

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Matrix, Vector

ROUNDING = 1e-12
"""Tolerance of a minimum: two of three votes are two thirds."""


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
    reached: NDArray[np.bool_] = (top >= least - ROUNDING) & (top - second >= min_margin - ROUNDING)
    return reached
