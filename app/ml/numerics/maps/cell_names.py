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
    is_labelled = codes >= 0
    pairs, place = np.unique(cells[is_labelled] * len(names) + codes[is_labelled], return_inverse=True)
    mass = np.bincount(place, weights[is_labelled], pairs.size)
    cell, code = np.divmod(pairs, len(names))
    order = np.lexsort((code, -mass, cell))
    held, first = np.unique(cell[order], return_index=True)
    best = order[first]
    name_of_cell, shares = np.full(count, "", dtype=np.array(names).dtype), np.zeros(count)
    name_of_cell[held] = np.array(names)[code[best]]
    shares[held] = mass[best] / np.bincount(cell, mass, count)[held]
    return name_of_cell, shares
