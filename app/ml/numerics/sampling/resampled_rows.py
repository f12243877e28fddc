"""Bootstrap resample of rows: how often each is drawn."""

import numpy as np
from numpy.typing import NDArray

BLOCK = 8192
"""Rows drawn at a time."""


def times_drawn(n: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """(n,) how often each row is in n draws with replacement; 256 times has a chance below 10⁻⁵⁰⁰."""
    times = np.zeros(n, np.uint8)
    for first in range(0, n, BLOCK):
        np.add.at(times, rng.integers(0, n, min(BLOCK, n - first)), np.uint8(1))
    return times
