"""Stability of clusters under resampling, for the report: whether fits of two halves of the rows find the same ones.

Reference: Lange et al. (2004), Neural Comput. 16:1299.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from app.base.errors import ValiantError
from app.ml.contract.algorithm import Labels, Vector
from app.ml.evaluation.splits import Split, kfold
from app.ml.statistics.intervals import clopper_pearson
from app.ml.statistics.metric_value import Metric, fold_mean, metric
from app.ml.training.fitting.cluster_criteria import stability
from app.ml.training.planning.cost import HALVED_ROWS, HALVINGS
from app.ml.training.rows.training_set import TrainingSet

NAME = "stability"
STREAM = 7
"""Stream of the seed's random numbers, so that no other draw of the training changes."""
NOTE = (
    f"Mean adjusted Rand index of the clusters that fits of two random halves give the same rows, over {HALVINGS} "
    f"halvings of up to {HALVED_ROWS} training rows. The interval is that of halvings of these rows, not of other rows."
)


class _Agreement(NamedTuple):
    value: float


def stability_under_halving(training_set: TrainingSet, rows: Labels, seed: int) -> Metric | None:
    """Stability of a clustering of these rows; None of other tasks, and of items, which no other fit can predict.

    Undefined, with the reason in its note, where a half cannot be fitted, or all rows are in one cluster.
    """
    if not training_set.task.labels or training_set.by_item or rows.size < 4:
        return None
    rng = np.random.Generator(np.random.PCG64([seed, STREAM]))
    chosen = np.sort(rng.choice(rows, min(rows.size, HALVED_ROWS), replace=False))
    groups = training_set.groups_among(chosen)
    halvings = [kfold(chosen.size, 2, rng, groups=groups) for _ in range(HALVINGS)]
    tasks = [partial(_agreement, training_set, chosen, halves, seed) for halves in halvings]
    try:
        values = np.array([made.value for made in training_set.each(_Agreement, tasks)])
    except ValiantError as error:
        return _measured(np.full(HALVINGS, np.nan), f"Half of the rows cannot be fitted: {error.detail}")
    return _measured(values, NOTE)


def _agreement(training_set: TrainingSet, rows: Labels, halves: Sequence[Split], seed: int) -> _Agreement:
    return _Agreement(float(stability(training_set, rows, halves, seed)[0]) if halves else np.nan)


def _measured(values: Vector, note: str) -> Metric:
    """The mean; agreement without exception counts as that of so many independent halvings."""
    stability = fold_mean(NAME, values)
    if np.ptp(values) == 0 and stability.value == 1:
        exact = clopper_pearson(values.size, values.size)
        stability = metric(NAME, 1.0, exact, "clopper-pearson", n=values.size, label=None)
    return stability.model_copy(update={"note": note})
