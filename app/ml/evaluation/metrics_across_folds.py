"""Metrics of several folds or resamples as one, with intervals."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from app.ml.contract.algorithm import Vector
from app.ml.statistics.metric_value import MEASURES, Metric, fold_mean, like, resample_mean


def across_folds(folds: Sequence[Sequence[Metric]]) -> list[Metric]:
    """Mean of every metric over the folds where it is defined, with a Student-t interval (LION 5.2.3)."""
    return [like(fold_mean(measured.name, values, measured.label), measured) for measured, values in _gathered(folds)]


def across_resamples(resamples: Sequence[Sequence[Metric]]) -> list[Metric]:
    """Metrics as of `across_folds`, with the middle of the resamples as the interval."""
    return [
        like(resample_mean(measured.name, values, measured.label), measured)
        for measured, values in _gathered(resamples)
    ]


def _gathered(folds: Sequence[Sequence[Metric]]) -> list[tuple[Metric, Vector]]:
    """Each metric, as one of the folds has it, with its values in those where it is defined."""
    gathered: dict[tuple[str, str | None], list[Metric]] = defaultdict(list)
    for metric in (metric for metrics in folds for metric in metrics):
        if metric.name in MEASURES and metric.value is not None:
            gathered[metric.name, metric.label].append(metric)
    return [(alike[0], np.array([metric.value for metric in alike])) for alike in gathered.values()]
