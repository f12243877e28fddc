"""Facts of the training rows that contributions of columns start from: their mean, or a few of the rows themselves."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Matrix, Vector

ROWS, MAX_CELLS = 100, 100_000
"""Training rows that a model keeps, at most, and numbers in them."""


class Background(NamedTuple):
    centre: Vector | None = None
    """(d,) mean of the matrix over the training rows, where scores are linear in it; None: not known."""
    rows: Matrix | None = None
    """(m, p) training rows of the raw matrix, where contributions are estimated; None: there are none."""


NO_BACKGROUND = Background()


def pack(background: Background, arrays: dict[str, NDArray[Any]]) -> None:
    """Add its arrays to those of the model."""
    arrays |= {f"background.{name}": value for name, value in background._asdict().items() if value is not None}


def unpack(arrays: Mapping[str, NDArray[Any]], width: int, inputs: int) -> Background:
    """The facts of a model with so many columns of its matrix, and inputs.

    Raises ValueError for what was not packed so.
    """
    background = Background(*(arrays.get(f"background.{name}") for name in Background._fields))
    shapes = [(background.centre, (width,)), (background.rows, (len(_rows(background)), inputs))]
    if any(array is not None and (array.dtype != np.float64 or array.shape != shape) for array, shape in shapes):
        raise ValueError("the training rows are of other columns")
    return background


def _rows(background: Background) -> NDArray[Any]:
    return np.zeros(0) if background.rows is None or not background.rows.ndim else background.rows
