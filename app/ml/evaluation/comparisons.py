"""Metrics side by side: training beside test, folds and resamples together."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from app.ml.contract.algorithm import Vector
from app.ml.evaluation.report import Gap
from app.ml.statistics.figures import MEASURES, Figure, fold_mean, like, resample_mean, shifted


def gaps(train: Sequence[Figure], test: Sequence[Figure]) -> list[Gap]:
    """Training beside test (LION 3.2), for every figure of the whole that means the same on both."""
    seen = {figure.name: figure.value for figure in train if figure.label is None}
    return [
        Gap(
            name=figure.name,
            average=figure.average,
            train=before,
            test=figure.value,
            gap=_worse(figure.name, before, figure.value),
        )
        for figure in test
        if figure.label is None and figure.name in MEASURES
        for before in (seen.get(figure.name),)
    ]


def across_folds(folds: Sequence[Sequence[Figure]]) -> list[Figure]:
    """Mean of every figure over the folds where it is defined, with a Student-t interval (LION 5.2.3)."""
    return [like(fold_mean(one.name, values, one.label), one) for one, values in _gathered(folds)]


def across_resamples(resamples: Sequence[Sequence[Figure]]) -> list[Figure]:
    """As `across_folds`, with the middle of the resamples as the interval."""
    return [like(resample_mean(one.name, values, one.label), one) for one, values in _gathered(resamples)]


def corrected(seen: Sequence[Figure], unseen: Sequence[Figure]) -> list[Figure]:
    """The .632 rule: rows left out of a resample judge a fit of few different rows, so they are a little too strict.

    seen: figures of the training rows, never a promise. unseen: figures of the rows left out.
    Source: Efron (1983), J. Am. Stat. Assoc. 78:316.
    """
    before = {(figure.name, figure.label): figure.value for figure in seen}
    return [
        shifted(figure, 0.368 * (value - figure.value))
        for figure in unseen
        if figure.value is not None and (value := before.get((figure.name, figure.label))) is not None
    ]


def _gathered(folds: Sequence[Sequence[Figure]]) -> list[tuple[Figure, Vector]]:
    """Each figure, as one of the folds has it, with its values in those where it is defined."""
    found: dict[tuple[str, str | None], list[Figure]] = defaultdict(list)
    for figure in (figure for figures in folds for figure in figures):
        if figure.name in MEASURES and figure.value is not None:
            found[figure.name, figure.label].append(figure)
    return [(alike[0], np.array([one.value for one in alike])) for alike in found.values()]


def _worse(name: str, train: float | None, test: float | None) -> float | None:
    return None if train is None or test is None else MEASURES[name].better * (train - test)
