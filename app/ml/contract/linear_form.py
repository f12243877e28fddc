"""Scores of a fit that are linear in the columns."""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.data import Matrix, Vector


class LinearForm(NamedTuple):
    """Scores of a fit that are linear in the columns: x @ coef + intercept."""

    coef: Matrix
    """(d, s)."""
    intercept: Vector
    """(s,)."""

    @classmethod
    def of(cls, coef: NDArray[np.float64], intercept: NDArray[np.float64] | float) -> Self:
        """coef: (d,) or (d, s). intercept: () or (s,)."""
        return cls(coef.reshape(len(coef), -1), np.reshape(intercept, -1))
