"""Importance of each column of the table in a fit: by its weights if it is linear, else as the algorithm declares it.

The importance of a column in a linear fit is the variance of what it contributes to the scores over the training rows:
(coefficient × standard deviation)² of a number, so that units play no part, and one number for all indicators of a
column of categories (LION 7: weights mean something for columns of one scale).
"""

from collections.abc import Iterator

import numpy as np

from app.base.errors import InvalidData
from app.base.faults import Fault
from app.ml.catalogue import nested
from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.contract.sparse_rows import dense
from app.ml.training.fitting.fit import Fitted
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.rows.training_set import TrainingSet


def weight_faults(spec: TrainSpec) -> Iterator[Fault]:
    """The algorithm declares neither weights nor importances for these parameters."""
    algorithm = nested.entry_of(spec.algorithm).algorithm
    if algorithm.linear is None and algorithm.importances(spec.algorithm) is None:
        name = spec.algorithm.name
        detail = f"{name} has no weights or importances of columns with these parameters: take forward or backward."
        yield Fault("/algorithm/name", detail)


def column_weights(training_set: TrainingSet, fitted: Fitted) -> Vector:
    """(p,) importance of each column of the table, in a fit on them. Raises InvalidData if not finite."""
    algorithm, state = training_set.algorithm, fitted.fit.state
    sources, p = fitted.preparation.layout.sources, len(training_set.raw.columns)
    importances = algorithm.importances(training_set.params)
    if algorithm.linear is not None:
        contributions = _variances(fitted, algorithm.linear(state).coef, sources, p)
    else:
        assert importances is not None  # noqa: S101 - the request was checked
        contributions = np.bincount(sources, importances(state), p).astype(np.float64)
    if not np.isfinite(contributions).all():
        raise InvalidData(f"The importances of a fit on {p} columns are not finite.")
    return contributions


def _variances(fitted: Fitted, coef: Matrix, sources: Labels, p: int) -> Vector:
    """coef: (d, s)."""
    x, variances = dense(fitted.data.x), np.zeros(p)
    alone = np.bincount(sources, minlength=p)[sources] == 1
    variances[sources[alone]] = (coef[alone] ** 2).sum(axis=1) * x[:, alone].var(axis=0)
    for source in np.unique(sources[~alone]):
        group = sources == source
        variances[source] = (x[:, group] @ coef[group]).var(axis=0).sum()
    return variances
