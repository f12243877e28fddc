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
    unlabelled = data.unlabelled or Unlabelled(data.x[:0])
    weights = data.weights / data.weights.mean()
    return Data.of(
        Task.REGRESSION,
        np.concatenate([data.x, unlabelled.x]),
        np.concatenate([data.y, np.full(len(unlabelled.x), NO_LABEL)]),
        weights=np.concatenate([weights, np.ones(len(unlabelled.x))]),
        numbers=_numbers(data, unlabelled),
        relations=_relations(data, unlabelled),
    )


def _numbers(data: Data, unlabelled: Unlabelled) -> Labels:
    if data.numbers is None or (len(unlabelled.x) and unlabelled.numbers is None):
        return np.arange(len(data.x) + len(unlabelled.x))
    return data.numbers if unlabelled.numbers is None else np.concatenate([data.numbers, unlabelled.numbers])


def _relations(data: Data, unlabelled: Unlabelled) -> Relations | None:
    """Between all rows; of a square they are the columns, which all rows have."""
    if data.relations is None or not len(unlabelled.x):
        return data.relations
    if data.square is not None:
        return data.relations._replace(square=np.concatenate([data.x, unlabelled.x]))
    return unlabelled.relations
