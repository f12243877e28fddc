"""Neighbours of rows, as they are found."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels, Matrix


class Neighbours(NamedTuple):
    """k neighbours of each of n rows, nearest first."""

    numbers: Labels
    """(n, k) of training rows in the dataset, from 0, or of prototypes."""
    distances: Matrix
    """(n, k)"""
    targets: Matrix | None
    """(n, k) numbers as they were fitted, or class codes; None: the model has no target."""
    shares: Matrix | None
    """(n, k) in the prediction of the row; they add up to 1. None: the prediction is not made of neighbours."""
    prototypes: bool
    """True if the neighbours stand for training rows."""
    items: NDArray[np.str_] | None = None
    """(n, k) names of the training rows; None: they have none."""
