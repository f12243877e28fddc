"""Predictions of a fit for some rows, with what metrics compare them with."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Data, Labels, Learned, Matrix, Vector
from app.ml.contract.task import PredictionKind
from app.ml.nested import PLAIN, Meaning, meaning
from app.ml.statistics.intervals import ratio


class Predictions(NamedTuple):
    values: NDArray[Any]
    """(n, …) as the task has them."""
    means: Meaning = PLAIN
    accepted: NDArray[np.bool_] | None = None
    """(n,) of classes: false where the model says that it does not know; None: it always does."""
    centres: Matrix | None = None
    """(k, d) of a clustering: means of the training rows of each cluster."""
    restored: Matrix | None = None
    """(n, d) of a projection: the rows, from their coordinates; None: they cannot be restored."""
    origin: Vector = np.zeros(0)
    """(d,) mean of the training rows."""
    reference: Labels | None = None
    """(n,) codes of classes that clusters are compared with, -1 where there is none; None: there is no comparison."""


def predictions(learned: Learned, data: Data, train: Data) -> Predictions:
    """Of the rows of `data`, prepared as for the fit. train: the rows that the fit has seen."""
    if not len(data.x):
        return Predictions(np.zeros(0))
    algorithm, params, state = learned.algorithm, learned.params, learned.state
    values = algorithm.predict(params, state, data.x)
    if data.task.supervised:
        known = algorithm.known if data.task.of_classes else None
        accepted = None if known is None else known(params, values)
        return Predictions(values, meaning(algorithm, params, data.task), accepted)
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is reported as undefined
        match data.task.record.prediction:
            case PredictionKind.LABEL:
                return Predictions(values, centres=_centroids(learned, train, int(values.max())))
            case PredictionKind.COORDINATES if algorithm.inverse:
                restored = algorithm.inverse(params, state, values)
                return Predictions(values, restored=restored, origin=train.x.mean(axis=0))
    return Predictions(values)


def _centroids(learned: Learned, train: Data, last: int) -> Matrix:
    """Mean of the training rows of each cluster; a cluster without any is at the mean of all."""
    labels = learned.algorithm.predict(learned.params, learned.state, train.x)
    k = max(int(labels.max()), last) + 1
    sizes = np.bincount(labels, train.weights, k)
    sums = np.stack([np.bincount(labels, train.weights * column, k) for column in train.x.T], axis=1)
    return np.where(sizes[:, None] > 0, ratio(sums, sizes[:, None]), train.x.mean(axis=0))
