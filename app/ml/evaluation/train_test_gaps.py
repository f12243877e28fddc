"""Gaps between training and test: the metrics of both, side by side."""

from collections.abc import Sequence

from app.ml.evaluation.report import Gap
from app.ml.statistics.metric_value import MEASURES, Metric


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


def _worse(name: str, train: float | None, test: float | None) -> float | None:
    return None if train is None or test is None else MEASURES[name].better * (train - test)
