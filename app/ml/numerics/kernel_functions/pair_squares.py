"""Squared distances of rows for kernels: by differences while columns are few, by products of matrices beyond."""

import numpy as np

from app.ml.contract.algorithm import Matrix
from app.ml.numerics.kernel_functions.compiled.squared_differences import squared_differences
from app.ml.numerics.neighbours.distances import squared_distances

MAX_DIRECT_COLUMNS = 64
"""Columns up to which differences take less time, besides losing no digits."""


def pair_squares(left: Matrix, right: Matrix) -> Matrix:
    """(n, m) squared distances of rows (n, d) and (m, d); 0 for equal rows."""
    if left.shape[1] > MAX_DIRECT_COLUMNS:
        return squared_distances(left, right)
    squares = np.empty((len(left), len(right)))
    squared_differences(np.ascontiguousarray(left), np.ascontiguousarray(right.T), squares)
    return squares
