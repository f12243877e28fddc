"""Criteria that choose the number of clusters by fits beyond those of the folds: stability and the gap statistic.

References: Lange et al. (2004), Neural Comput. 16:1299; Tibshirani, Walther & Hastie (2001),
J. R. Stat. Soc. B 63:411.
"""

from collections.abc import Sequence
from itertools import permutations

import numpy as np

from app.ml.contract.algorithm import Data, Labels, Matrix, Vector, silent
from app.ml.evaluation.splits import Split
from app.ml.numerics.clustering.rand_index import adjusted_rand, contingency
from app.ml.training.fitting.fit import Fitted, fit_rows
from app.ml.training.rows.training_set import TrainingSet

REFERENCES = 3
"""Tables without clusters that each fit is compared with."""


def stability(training_set: TrainingSet, rows: Labels, splits: Sequence[Split], seed: int) -> Vector:
    """(folds,) mean adjusted Rand index of the clusters that a fit of this fold alone gives all rows, and those of the
    fits of the other folds, which share no row with it. NaN for a single cluster. Coarser clusters, each of several,
    may be as stable.
    """
    labellings = []
    for split in splits:
        fitted = fit_rows(training_set, rows[split.test], seed)
        labellings.append(_labels(fitted, training_set.data(fitted.preparation, rows).x))
    agreement = np.full((len(splits), len(splits)), np.nan)
    for i, j in permutations(range(len(splits)), 2):
        agreement[i, j] = adjusted_rand(contingency(labellings[i], labellings[j]))
    return np.array([np.delete(row, place).mean() for place, row in enumerate(agreement)])


def gap(training_set: TrainingSet, rows: Labels, splits: Sequence[Split], seed: int) -> Vector:
    """(folds,) how much larger the logarithm of the scatter within clusters is for rows drawn evenly from the box that
    holds the training rows, on average over REFERENCES draws. NaN where the rows of every cluster are equal.
    """
    return np.array([_gap(training_set, rows[split.train], seed, place) for place, split in enumerate(splits)])


def _gap(training_set: TrainingSet, rows: Labels, seed: int, place: int) -> float:
    fitted = fit_rows(training_set, rows, seed)
    x = fitted.data.x
    low, high = x.min(axis=0), x.max(axis=0)
    rng = np.random.Generator(np.random.PCG64([seed, place]))
    expected = []
    for _ in range(REFERENCES):
        data = Data.of(training_set.task, rng.uniform(low, high, x.shape), levels=fitted.data.levels)
        expected.append(_log_scatter(fitted._replace(learned=training_set.fit(data, seed, silent)[1]), data.x))
    return float(np.mean(expected)) - _log_scatter(fitted, x)


def _labels(fitted: Fitted, x: Matrix) -> Labels:
    labels: Labels = fitted.learned.predict(x)
    return labels


def _log_scatter(fitted: Fitted, x: Matrix) -> float:
    """Logarithm of the squared distances of rows to the mean of their cluster, summed; NaN for 0."""
    labels = _labels(fitted, x)
    counts = np.bincount(labels)
    means = np.stack([np.bincount(labels, column) for column in x.T], axis=1) / np.maximum(counts, 1)[:, None]
    scatter = float(np.square(x - means[labels]).sum())
    return float(np.log(scatter)) if scatter > 0 else np.nan
