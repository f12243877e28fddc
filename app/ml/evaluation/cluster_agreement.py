"""Agreement of clusters with classes that no fit has seen, or with other clusters: pairs of rows, shared information.

Reference: Meilă (2007), J. Multivar. Anal. 98:873, for the variation of information.
"""

from collections.abc import Mapping
from typing import NamedTuple, Self

import numpy as np

from app.ml.contract.algorithm import Labels, Vector
from app.ml.numerics.clustering import mutual_information
from app.ml.numerics.clustering.rand_index import beyond_chance
from app.ml.statistics.intervals import Resamples
from app.ml.statistics.metric_value import Metric, bootstrapped, proportion
from app.ml.statistics.resampling import Rows

NOTES = {
    "adjusted_rand": "Agreement on pairs of rows, less what chance gives: 1 for equal groups, 0 on average for labels "
    "without relation.",
    "normalized_mutual_information": "Mutual information over the mean of the two entropies. It is not corrected for "
    "chance: more clusters raise it.",
    "adjusted_mutual_information": "Mutual information less what chance gives, over the mean of the two entropies less "
    "the same: 1 for equal groups, 0 on average for labels without relation.",
    "variation_of_information": "Information in nats that one of the groupings lacks about the other, both ways: 0 for "
    "equal groups, at most the logarithm of the number of rows. It is a distance, and is not corrected for chance.",
    "purity": "Share of rows of the most frequent class of their cluster. More clusters raise it, up to 1 for clusters "
    "of one row each; the interval takes the class of each cluster as given.",
}
ROUNDING = 1e-12


class _Sizes(NamedTuple):
    """Counts of the rows that have the label and the class of each row, its label, its class: (n,) each."""

    cell: Vector
    label: Vector
    kind: Vector
    pure: int
    """Rows of the most frequent class of their label."""
    labels: Labels
    """(k,) rows of each label."""
    kinds: Labels
    """(c,) rows of each class."""

    @classmethod
    def of(cls, labels: Labels, classes: Labels) -> Self:
        label, kind = (np.unique(codes, return_inverse=True)[1] for codes in (labels, classes))
        cell = np.unique(label * (kind.max() + 1) + kind, return_inverse=True)[1]
        counts = [np.bincount(codes) for codes in (cell, label, kind)]
        cells, labels_of, kinds_of = (
            count[codes].astype(np.float64) for count, codes in zip(counts, (cell, label, kind), strict=True)
        )
        largest = np.zeros(counts[1].size)
        np.maximum.at(largest, label, cells)
        return cls(cells, labels_of, kinds_of, int(largest.sum()), counts[1], counts[2])


def agreement(labels: Labels, classes: Labels, draws: Resamples) -> list[Metric]:
    """labels: (n,) of clusters. classes: (n,) codes, -1 in rows that do not count. Nothing where none counts."""
    has_class = classes >= 0
    if not has_class.any():
        return []
    sizes, n = _Sizes.of(labels[has_class], classes[has_class]), int(has_class.sum())
    rows = Rows(draws._replace(group=draws.group[has_class]))
    values = {"adjusted_rand": _rand(sizes, rows)} | _information(sizes, rows)
    return [*_bootstrapped(values, n), _noted(proportion("purity", sizes.pure, n))]


def between(labels: Labels, other: Labels, draws: Resamples) -> list[Metric]:
    """Agreement of two clusterings of the same rows, neither of which is the truth: the same both ways around.

    one, other: (n,) labels, whatever they are called.
    """
    sizes, rows = _Sizes.of(labels, other), Rows(draws)
    values = {
        "adjusted_rand": _rand(sizes, rows),
        "normalized_mutual_information": _share(*_entropies(sizes, rows)),
        "variation_of_information": _with_draws(np.log(sizes.label * sizes.kind / sizes.cell**2), rows),
    }
    return _bootstrapped(values, labels.size)


def _bootstrapped(draws_by_name: Mapping[str, Vector], n: int) -> list[Metric]:
    return [_noted(bootstrapped(name, values[0], values[1:], n)) for name, values in draws_by_name.items()]


def _rand(sizes: _Sizes, rows: Rows) -> Vector:
    n = sizes.cell.size
    return beyond_chance(
        *(rows.pairs(size - 1) for size in (sizes.cell, sizes.label, sizes.kind, np.full(n, float(n))))
    )


def _information(sizes: _Sizes, rows: Rows) -> dict[str, Vector]:
    """(1 + draws,) each. The information of a draw is linear in how often each row counts: that of its own cells would
    be too large, as rows that are drawn twice agree with themselves.
    """
    shared, most = _entropies(sizes, rows)
    chance = mutual_information.expected(sizes.labels, sizes.kinds)
    return {
        "normalized_mutual_information": _share(shared, most),
        "adjusted_mutual_information": _share(shared - chance, most - chance),
    }


def _entropies(sizes: _Sizes, rows: Rows) -> tuple[Vector, Vector]:
    """(1 + draws,) each: the mutual information, and the mean of the two entropies."""
    shared, most = mutual_information.pointwise(sizes.cell, sizes.label, sizes.kind)
    return _with_draws(shared, rows), _with_draws(most, rows)


def _with_draws(values: Vector, rows: Rows) -> Vector:
    """(1 + draws,) their mean over all rows, then over each draw."""
    return np.concatenate([[values.mean()], rows.means(values)])


def _share(part: Vector, whole: Vector) -> Vector:
    """NaN where nothing but rounding is possible."""
    possible = whole > ROUNDING
    return np.where(possible, part / np.where(possible, whole, 1.0), np.nan)


def _noted(value: Metric) -> Metric:
    return value.model_copy(update={"note": NOTES[value.name]})
