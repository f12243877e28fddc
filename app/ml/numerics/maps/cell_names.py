"""Names of cells, or of other clusters: the most frequent class of the rows of each."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels, Vector


def name_cells(
    cells: Labels, codes: Labels, weights: Vector, names: Sequence[str], count: int
) -> tuple[NDArray[np.str_], Vector]:
    """(count,) name of the class with the largest weight in each cell, the first of equal ones, and its share.

    cells: (n,) of the rows. codes: (n,) of their classes, -1 where there is none. A cell without classes is named "",
    and its share is 0.
    """
    known = codes >= 0
    places = cells[known] * len(names) + codes[known]
    mass = np.bincount(places, weights[known], count * len(names)).reshape(count, len(names))
    total = mass.sum(axis=1)
    largest = mass.argmax(axis=1)
    found = np.where(total > 0, np.array(names)[largest], "")
    return found, np.where(total > 0, mass.max(axis=1) / np.where(total > 0, total, 1.0), 0.0)
