"""Effective number of rows: so many rows of equal weight would be worth as much as the weighted ones (Kish).

Reference: Kish (1965), Survey Sampling, section 11.7.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def effective_rows(weights: NDArray[np.float64]) -> NDArray[Any]:
    """(Σw)²/Σw² of weights (…, n): from 1 to n, and 0 where no row has a weight. Shape (…).

    >>> effective_rows(np.array([[2.0, 2, 2, 2], [1, 0, 0, 0], [0, 0, 0, 0]])).tolist()
    [4.0, 1.0, 0.0]
    """
    largest = weights.max(axis=-1, initial=0.0)
    shares = weights / np.where(largest > 0, largest, 1.0)[..., None]  # whose squares do not underflow
    squares = np.vecdot(shares, shares)
    return np.asarray(np.where(largest > 0, shares.sum(axis=-1) ** 2 / np.where(largest > 0, squares, 1.0), 0.0))
