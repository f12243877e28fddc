"""A tree of merges with the numbers of its rows in their dataset: what a query of the dendrogram reads."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels
from app.ml.numerics.clustering.linkage import Merges


class RowTree(NamedTuple):
    merges: Merges
    numbers: Labels
    """(n,) numbers of the rows in the dataset, from 0."""
    items: NDArray[np.str_] | None
    """(n,) names of the rows; None: they have none."""
