"""Predictions of a fit for some rows, with what metrics compare them with."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.catalogue.nested import PLAIN, Meaning, meaning
from app.ml.contract.algorithm import Data, FittedLearner, Labels, Matrix, Vector
from app.ml.contract.sparse_rows import sparse
from app.ml.contract.task import PredictionKind
from app.ml.contract.threads import run_at_once
from app.ml.evaluation.splits import evenly
from app.ml.statistics.intervals import ratio

BLOCK_ROWS = 8192
"""Rows that one thread predicts at a time."""
MOST_JOINED = 1000
"""Training rows whose pairs are compared with a tree of clusters; of more, as many evenly spaced ones."""


class Joined(NamedTuple):
    """Pairs of some training rows of a tree of clusters."""

    rows: Labels
    """(m,)"""
    distances: Matrix
    """(m, m)"""
    heights: Matrix
    """(m, m) at which they join."""


class Predictions(NamedTuple):
    values: NDArray[Any]
    """(n, …) as the task has them."""
    means: Meaning = PLAIN
    accepted: NDArray[np.bool_] | None = None
    """(n,) of classes: false where the model rejects the row; None: it rejects none."""
    centres: Matrix | None = None
    """(k, d) of a clustering: means of the training rows of each cluster."""
    restored: Matrix | None = None
    """(n, d) of a projection: the rows, from their coordinates; None: they cannot be restored."""
    origin: Vector = np.zeros(0)
    """(d,) mean of the training rows."""
    free_parameters: float | None = None
    """Free parameters of a density on its training rows; None: not declared, or other rows."""
    joined: Joined | None = None
    """Joining heights of a tree of clusters on its training rows."""
    reference: Labels | None = None
    """(n,) codes of classes that clusters are compared with, -1 where there is none; None: there is no comparison."""


def predictions(learned: FittedLearner, data: Data, train: Data) -> Predictions:
    """Predictions for the rows of `data`, prepared as for the fit. train: the rows that the fit has seen."""
    if not len(data.x):
        return Predictions(np.zeros(0))
    algorithm, params, state = learned.algorithm, learned.params, learned.state
    values = _predicted(learned, data.x)
    if data.task.supervised:
        is_accepted = algorithm.known if data.task.of_classes else None
        accepted = None if is_accepted is None else is_accepted(params, values)
        return Predictions(values, meaning(algorithm, params, data.task), accepted)
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is reported as undefined
        match data.task.record.prediction:
            case PredictionKind.LABEL if train.square is None and not train.by_item and sparse(train.x) is None:
                return Predictions(values, centres=_centroids(learned, train, int(values.max())))
            case PredictionKind.COORDINATES if algorithm.inverse:
                restored = algorithm.inverse(params, state, values)
                return Predictions(values, restored=restored, origin=train.x.mean(axis=0))
    return Predictions(values)


def _predicted(learned: FittedLearner, x: Matrix) -> NDArray[Any]:
    """Predictions of rows (n, d); of blocks of them at once where that changes no bit."""
    algorithm, params, state = learned.algorithm, learned.params, learned.state
    if not algorithm.rowwise or len(x) <= BLOCK_ROWS or sparse(x) is not None:
        return algorithm.predict(params, state, x)
    first, *others = (
        partial(algorithm.predict, params, state, x[start : start + BLOCK_ROWS])
        for start in range(0, len(x), BLOCK_ROWS)
    )
    return np.concatenate([first(), *run_at_once(others)])  # the first alone: kernels are compiled by then


def of_training_rows(learned: FittedLearner, train: Data) -> Predictions:
    """Predictions for the rows that the fit has seen, with what is measured on them alone."""
    predicted, algorithm = predictions(learned, train, train), learned.algorithm
    if algorithm.free_parameters is not None:
        predicted = predicted._replace(free_parameters=algorithm.free_parameters(learned.params, learned.state))
    if algorithm.joined is not None and (train.relations is None or train.square is not None):
        rows = evenly(len(train.x), MOST_JOINED)
        distances, heights = algorithm.joined(learned.params, learned.state, rows)
        distances = distances if train.square is None else train.square[np.ix_(rows, rows)]
        predicted = predicted._replace(joined=Joined(rows, distances, heights))
    return predicted


def _centroids(learned: FittedLearner, train: Data, last: int) -> Matrix:
    """Mean of the training rows of each cluster; a cluster without any is at the mean of all."""
    labels = learned.algorithm.predict(learned.params, learned.state, train.x)
    k = max(int(labels.max()), last) + 1
    sizes = np.bincount(labels, train.weights, k)
    sums = np.stack([np.bincount(labels, train.weights * column, k) for column in train.x.T], axis=1)
    return np.where(sizes[:, None] > 0, ratio(sums, sizes[:, None]), train.x.mean(axis=0))
