"""The .632 estimate of bootstrap validation."""

from collections.abc import Sequence

from app.ml.statistics.metric_value import Metric, shifted


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
