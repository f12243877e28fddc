"""Metrics side by side: training beside test, folds and resamples together."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from app.ml.contract.algorithm import Vector
from app.ml.evaluation.report import Gap
from app.ml.statistics.metric_value import MEASURES, Metric, fold_mean, like, resample_mean, shifted


def gaps(train: Sequence[Metric], test: Sequence[Metric]) -> list[Gap]:
    """Training beside test (LION 3.2), for every metric of the whole that means the same on both."""
    seen = {metric.name: metric.value for metric in train if metric.label is None}
    return [
        Gap(
            name=metric.name,
            average=metric.average,
            train=before,
            test=metric.value,
            gap=_worse(metric.name, before, metric.value),
        )
        for metric in test
        if metric.label is None and metric.name in MEASURES
        for before in (seen.get(metric.name),)
    ]


def across_folds(folds: Sequence[Sequence[Metric]]) -> list[Metric]:
    """Mean of every metric over the folds where it is defined, with a Student-t interval (LION 5.2.3)."""
    return [like(fold_mean(one.name, values, one.label), one) for one, values in _gathered(folds)]


def across_resamples(resamples: Sequence[Sequence[Metric]]) -> list[Metric]:
    """Metrics as of `across_folds`, with the middle of the resamples as the interval."""
    return [like(resample_mean(one.name, values, one.label), one) for one, values in _gathered(resamples)]


def corrected(seen: Sequence[Metric], unseen: Sequence[Metric]) -> list[Metric]:
    """The .632 rule: rows left out of a resample evaluate a fit of few different rows, so they are a little too strict.

    seen: metrics of the training rows, never a promise. unseen: metrics of the rows left out.
    Source: Efron (1983), J. Am. Stat. Assoc. 78:316.
    """
    before = {(metric.name, metric.label): metric.value for metric in seen}
    return [
        shifted(metric, 0.368 * (value - metric.value))
        for metric in unseen
        if metric.value is not None and (value := before.get((metric.name, metric.label))) is not None
    ]


def _gathered(folds: Sequence[Sequence[Metric]]) -> list[tuple[Metric, Vector]]:
    """Each metric, as one of the folds has it, with its values in those where it is defined."""
    found: dict[tuple[str, str | None], list[Metric]] = defaultdict(list)
    for metric in (metric for metrics in folds for metric in metrics):
        if metric.name in MEASURES and metric.value is not None:
            found[metric.name, metric.label].append(metric)
    return [(alike[0], np.array([one.value for one in alike])) for alike in found.values()]


def _worse(name: str, train: float | None, test: float | None) -> float | None:
    return None if train is None or test is None else MEASURES[name].better * (train - test)
