"""The column whose numbers are part of the score of a row, and no input of a fit."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class OffsetColumn(NamedTuple):
    """A column of the matrix that is added to the score of each row."""

    column: int
    logarithm: bool
    """True of an exposure: its logarithm is added."""

    def values(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) numbers to add to the scores of rows (n, d); NaN where a value is missing or has no logarithm."""
        numbers: NDArray[np.float64] = x[:, self.column].copy()
        return np.asarray(np.log(np.where(numbers > 0, numbers, np.nan))) if self.logarithm else numbers
