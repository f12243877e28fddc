"""Eigenvalues of a graph and coordinates of its nodes, as a query reads them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels, Matrix, Vector


class SpectrumView(NamedTuple):
    values: Vector
    """(m,) smallest eigenvalues, ascending."""
    coordinates: Matrix
    """(n, k) values of the training rows by eigenvectors."""
    numbers: Labels
    """(n,) numbers of the rows in the dataset, from 0."""
    items: NDArray[np.str_] | None
    """(n,) names of the rows; None: they have none."""
    components: int
    """Components of the graph."""


def widest_step(values: Vector) -> int:
    """Number of eigenvalues before the largest step between two consecutive ones, the first of equal steps."""
    return int(np.diff(values).argmax()) + 1 if values.size > 1 else 1


def eigengap(values: Vector) -> float | None:
    """The largest step between two consecutive eigenvalues; None: there is one eigenvalue."""
    return float(np.diff(values).max()) if values.size > 1 else None


def eigengap_ratio(values: Vector) -> float | None:
    """The largest step between two consecutive eigenvalues over the second largest; None: there is no second one."""
    if values.size < 3:
        return None
    second, largest = np.sort(np.diff(values))[-2:]
    return float(largest / second) if second > 0 and largest / second < np.inf else None
