"""Distributions of categories in each class: one for each categorical input, whatever the number of its indicators.

Of a level j of an input with L levels a class has the share

    q_j = (n_j + s) / (n + s·L),

n_j being the weight of its rows of that level and s the smoothing. Indicators are 0 or 1, one of an input at a time, so
that the logarithm of the share of a row's level is linear in them; so it is in an input that is true or false, which is
a column of two values. A level that no training row had leaves the classes as likely as they are without it: its
indicators are all 0.

Taken for columns of numbers of their own, the indicators of one input would count as independent evidence, as if
the input had been seen once for each level.
"""

from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import Data, Labels, Matrix, Vector

LEAST_SHARE = 1e-300
"""Share of a level that a class does not have: its logarithm is finite."""


class Categoricals(NamedTuple):
    """Log probabilities of the categories of a row, linear in its columns."""

    columns: Labels
    """(c,) numbers of the columns of the matrix."""
    weights: Matrix
    """(c, k)"""
    constants: Vector
    """(k,)"""


def categoricals(data: Data, smoothing: float) -> Categoricals | None:
    """Shares of levels in each class; None where no column stands for categories."""
    if data.categories is None or (data.categories < 0).all():
        return None
    inputs, places = data.categories, np.flatnonzero(data.categories >= 0)
    weights, constants = np.zeros((places.size, data.targets.shape[1])), np.zeros(data.targets.shape[1])
    by_class = data.targets * data.weights[:, None]
    for number in np.unique(inputs[places]).tolist():
        among = np.flatnonzero(inputs[places] == number)
        x = data.x[:, places[among]]
        if among.size > 1 or _indicates(x):
            weights[among] = _log_shares(x.T @ by_class, smoothing)
            continue
        low, high = x.min(), x.max()
        if high > low:
            true = ((x[:, 0] - low) / (high - low)) @ by_class
            no, yes = _log_shares(np.stack([by_class.sum(axis=0) - true, true]), smoothing)
            weights[among] = (yes - no) / (high - low)
            constants += no - low * (yes - no) / (high - low)
    return Categoricals(places, weights, constants)


def _indicates(column: Matrix) -> bool:
    """True for the only indicator of an input of one level, in which all rows but those of unseen levels are 1."""
    return bool((column == 1.0).all())


def _log_shares(counts: Matrix, smoothing: float) -> Matrix:
    """(levels, k) of counts; of a class without rows all levels are alike."""
    counts = np.maximum(counts, 0.0) + smoothing
    whole = counts.sum(axis=0)
    shares = np.where(whole > 0, counts / np.where(whole > 0, whole, 1.0), 1 / len(counts))
    return np.asarray(np.log(np.maximum(shares, LEAST_SHARE)))


def category_log_probabilities(categories: Categoricals, x: Matrix) -> Matrix:
    """(n, k) by class."""
    return np.asarray(x[:, categories.columns] @ categories.weights + categories.constants)


def without_categories(categories: Categoricals, x: Matrix) -> Matrix:
    """The rows with 0 in the columns of categories: columns of one value, which no density takes into account."""
    numbers = x.copy()
    numbers[:, categories.columns] = 0.0
    return numbers
