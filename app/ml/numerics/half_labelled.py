"""Rows with and without a label as one table."""

import numpy as np

from app.ml.contract.algorithm import Data, Labels, Task
from app.ml.contract.data import Unlabelled
from app.ml.contract.relations import Relations

NO_LABEL = -1.0
"""Target of a row without a label."""


def joined(data: Data) -> Data:
    """All rows, those with a label first; the target is the code of the class, or `NO_LABEL`.

    Weights of labelled rows have mean 1, and the others weigh 1.
    """
    rest = data.unlabelled or Unlabelled(data.x[:0])
    weights = data.weights / data.weights.mean()
    return Data.of(
        Task.REGRESSION,
        np.concatenate([data.x, rest.x]),
        np.concatenate([data.y, np.full(len(rest.x), NO_LABEL)]),
        weights=np.concatenate([weights, np.ones(len(rest.x))]),
        numbers=_numbers(data, rest),
        relations=_relations(data, rest),
    )


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
