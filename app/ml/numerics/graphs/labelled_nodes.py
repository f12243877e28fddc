"""Rows with and without a label as the nodes of one graph."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Data, Matrix
from app.ml.numerics.graphs.node_values import numbered, same_for_equal
from app.ml.numerics.half_labelled import joined


class LabelledNodes(NamedTuple):
    data: Data
    """All rows, in the order of the nodes; the target is the code of the class, -1 where there is none."""
    classes: int

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """(n,)"""
        return np.asarray(self.data.y >= 0)

    @property
    def given(self) -> Matrix:
        """(n, k) 1 for the class of a labelled row, else 0."""
        return np.asarray(self.data.y[:, None] == np.arange(self.classes), np.float64)

    def same_for_equal(self, values: Matrix) -> Matrix:
        """Each row has the mean over the rows equal to it, of labelled ones where there are any."""
        if not len(values):
            return values
        return same_for_equal(self.data, values, self.data.weights, self.labelled)


def labelled_nodes(data: Data) -> LabelledNodes:
    return LabelledNodes(numbered(joined(data)), data.targets.shape[1])
