"""Outputs: further values of a row beside its prediction, which a request may include."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from app.ml.contract.data import Matrix


@dataclass(frozen=True, slots=True)
class Output:
    """One output, as an algorithm declares it."""

    description: str
    """A sentence with the unit."""
    compute: Callable[[Any, Any, Matrix], NDArray[Any]]
    """Maps (params, state, x) to (n,) or (n, k) floats, whole numbers or booleans."""
