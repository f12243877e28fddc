"""Groups of rows in pictures: by class where there are classes, else by cluster, as many as colours distinguish."""

from collections import Counter
from collections.abc import Mapping, Sequence

from app.ml.charts.channels import distinct
from app.ml.charts.cluster_labels import NO_NAMES, cluster_label, number_of
from app.ml.charts.themes import CATEGORIES
from app.ml.contract.labels import Class, different
from app.ml.evaluation.row_sample import RowSample

NONE, OTHERS = "(none)", "other"


def row_groups(sample: RowSample, called: Mapping[int, str] = NO_NAMES) -> list[str]:
    """Group of each row; empty where there are none. Clusters are the groups of a clustering.

    called: names of the clusters, by their numbers.
    """
    if sample.clusters is not None:
        return _largest([cluster_label(cluster, called) for cluster in sample.clusters])
    labels: Sequence[Class | None] = sample.classes or []
    classes = different([label for label in labels if label is not None])
    names = dict(
        zip([(type(label), label) for label in classes], distinct([str(label) for label in classes]), strict=True)
    )
    return _largest([NONE if label is None else names[type(label), label] for label in labels])


def order_of(groups: Sequence[str], sample: RowSample) -> list[str]:
    """Groups in the order of a legend: clusters by number, classes by name, the others last."""
    numbers = sample.clusters is not None
    last = {NONE: 1, OTHERS: 2}
    return sorted(set(groups), key=lambda group: (last.get(group, 0), number_of(group) if numbers else 0, group))


def _largest(names: list[str]) -> list[str]:
    counts = Counter(names)
    if len(counts) <= CATEGORIES:
        return names
    largest = {name for name, _ in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[: CATEGORIES - 1]}
    return [name if name in largest else OTHERS for name in names]


def drawn_rows(shown: int, sample: RowSample) -> str:
    """Rows of the picture, of those of the training.

    >>> drawn_rows(2, RowSample(rows=[0, 4], rows_train=5))
    '2 of 5 training rows, drawn with the seed of the training'
    """
    if shown == sample.rows_train:
        return f"{shown} training rows"
    return f"{shown} of {sample.rows_train} training rows, drawn with the seed of the training"
