"""Outputs: further values of a row beside its prediction, which a request may include."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.data import Matrix


@dataclass(frozen=True, slots=True)
class Output:
    """One output, as an algorithm declares it."""

    description: str
    """A sentence with the unit."""
    compute: Callable[[Any, Any, Matrix], NDArray[Any]]
    """Maps (params, state, x) to (n,) or (n, k) floats, whole numbers or booleans."""
    width: Callable[[Any, Any], int] | None = None
    """Maps (params, state) to k, the number of values of each row, at least 1. None: each row has one value, not a
    list."""
    size: Callable[[Any, Any], float] | None = None
    """Maps (params, state) to the size of the numbers of which each value is a difference: it is exact to their
    rounding. None: to its own."""

    applies: Callable[[Any], bool] = lambda _: True
    """Maps params to True if a fit with these has the output."""

    @property
    def shape(self) -> str:
        """Shape for n rows, as documents show it."""
        return "(n,)" if self.width is None else "(n, k)"

    def none(self, params: Any, state: Any) -> NDArray[Any]:
        """The values of no rows."""
        return np.empty(0) if self.width is None else np.empty((0, self.width(params, state)))
