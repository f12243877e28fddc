"""Random numbers that belong to a row: drawn from its bits, so that it gets the same among any other rows.

Reference: Steele, Lea & Flood (2014), Fast splittable pseudorandom number generators, OOPSLA: 453 (SplitMix64).
"""

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Matrix

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def row_draws(x: Matrix, count: int) -> Matrix:
    """(n, count) numbers from 0 up to 1 for rows x (n, d)."""
    words = np.where(np.isnan(x), np.nan, x + 0.0).view(np.uint64)  # of two zeros one, and of all that is no number
    state = np.zeros(len(x), np.uint64)
    for word in words.T:
        state = _mixed(state ^ word) + GOLDEN
    steps = np.arange(1, count + 1, dtype=np.uint64) * GOLDEN
    return (_mixed(state[:, None] + steps) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mixed(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
