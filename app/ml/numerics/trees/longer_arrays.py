"""Arrays that become longer as trees grow, and are cut to their size in the end."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray


def room(size: int, share: float) -> int:
    """New length of an array of this size. share: estimate of how many times as long it will be in the end."""
    return math.ceil(size * share * 1.1) + 3


def longer(array: NDArray[Any], size: int) -> NDArray[Any]:
    """The same with more places, which take no memory before they are written to."""
    longer = np.empty((size, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


def cut(array: NDArray[Any], size: int) -> None:
    """Leave only so many rows, without a copy."""
    array.resize((size, *array.shape[1:]), refcheck=False)
