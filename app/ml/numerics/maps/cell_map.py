"""A map with the numbers of its cells, as a query of its planes reads it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.maps.grid import Grid


class CellMap(NamedTuple):
    grid: Grid
    prototypes: Matrix
    """(m, d)"""
    hits: Labels
    """(m,) training rows of each cell."""
    quantisation_error: float
    """Mean distance of the training rows to the nearest prototype."""
    topographic_error: float
    """Share of the training rows whose two nearest prototypes are not in adjacent cells."""
    names: NDArray[np.str_] | None = None
    """(m,) most frequent class of the training rows of each cell, "" where none has one; None: there are no classes."""
    shares: Vector | None = None
    """(m,) share of that class among the rows that have one."""
