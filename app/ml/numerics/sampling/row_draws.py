"""Random numbers that belong to a row: drawn from its bits, so that it gets the same among any other rows.

Reference: Steele, Lea & Flood (2014), Fast splittable pseudorandom number generators, OOPSLA: 453 (SplitMix64).
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Matrix, Vector

Words: TypeAlias = NDArray[np.uint64]
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def row_draws(x: Matrix, count: int) -> Matrix:
    """(n, count) numbers from 0 up to 1 for rows x (n, d)."""
    steps = np.arange(1, count + 1, dtype=np.uint64) * GOLDEN
    return (mixed(row_words(x)[:, None] + steps) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def row_words(x: Matrix) -> Words:
    """(n,) a hash of the numbers of each row (n, d)."""
    state = np.zeros(len(x), np.uint64)
    for column in x.T:
        state = mixed(state ^ number_words(column)) + GOLDEN
    return state


def number_words(numbers: Vector) -> Words:
    """(m,) the bits of numbers: of two zeros one, and of all that is no number."""
    return np.where(np.isnan(numbers), np.nan, numbers + 0.0).view(np.uint64)


def mixed(z: Words) -> Words:
    """Bits of these words, mixed: each of the result depends on all."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
