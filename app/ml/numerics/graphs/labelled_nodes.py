"""Rows with and without a label as the nodes of one graph."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Data, Labels, Matrix, Task
from app.ml.contract.data import Unlabelled
from app.ml.contract.relations import Relations
from app.ml.numerics.graphs.node_values import numbered, same_for_equal


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
    rest = data.unlabelled or Unlabelled(data.x[:0])
    weights = data.weights / data.weights.mean()
    joined = Data.of(
        Task.REGRESSION,
        np.concatenate([data.x, rest.x]),
        np.concatenate([data.y, np.full(len(rest.x), -1.0)]),
        weights=np.concatenate([weights, np.ones(len(rest.x))]),
        numbers=_numbers(data, rest),
        relations=_relations(data, rest),
    )
    return LabelledNodes(numbered(joined), data.targets.shape[1])


def _numbers(data: Data, rest: Unlabelled) -> Labels:
    if data.numbers is None or (len(rest.x) and rest.numbers is None):
        return np.arange(len(data.x) + len(rest.x))
    return data.numbers if rest.numbers is None else np.concatenate([data.numbers, rest.numbers])


def _relations(data: Data, rest: Unlabelled) -> Relations | None:
    """Between all rows; of a square they are the columns, which all rows have."""
    if data.relations is None or not len(rest.x):
        return data.relations
    if data.square is not None:
        return data.relations._replace(square=np.concatenate([data.x, rest.x]))
    return rest.relations
