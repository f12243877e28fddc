"""Metrics of a clustering, on its own or beside classes that it has not learned from."""

import math
from collections.abc import Iterator

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.evaluation.metrics import mean
from app.ml.numerics.clustering import validity
from app.ml.statistics.intervals import Resamples, ratio
from app.ml.statistics.metric_value import Metric, bootstrapped, counted
from app.ml.statistics.resampling import Rows

MOST_CLUSTERS = 50
"""Clusters with an index of Davies and Bouldin, whose interval takes all pairs of them in every resample."""


def clustering(x: Matrix, labels: Labels, centres: Matrix, draws: Resamples) -> list[Metric]:
    """Compactness and separation of the clusters, squared distances to the own centre (LION 12.7), and sizes.

    x: (n, d). labels: (n,) rows of `centres` (k, d). Intervals are of these clusters, not of others that other rows
    would have made.
    """
    n = labels.size
    squares, between = validity.scatters(x, labels, centres)
    return [
        _silhouette(x, labels, draws),
        _calinski_harabasz(squares, between, np.unique(labels).size, draws),
        *_davies_bouldin(np.sqrt(squares), labels, centres, draws),
        mean("mean_inertia", squares, draws),
        bootstrapped("inertia", squares.sum(), n * draws.sums(squares) / draws.size(), n),
        *sizes(labels, len(centres)),
    ]


def related(square: Matrix, labels: Labels, draws: Resamples) -> list[Metric]:
    """Metrics of a clustering by given dissimilarities (n, n) of its rows."""
    return [_silhouette(square, labels, draws, square), *sizes(labels)]


def sizes(labels: Labels, clusters: int = 0) -> list[Metric]:
    """Rows of each cluster, of so many or more."""
    counts = np.bincount(labels, minlength=clusters)
    return [counted("size", int(count), labels.size, str(j)) for j, count in enumerate(counts)]


def _silhouette(x: Matrix, labels: Labels, draws: Resamples, square: Matrix | None = None) -> Metric:
    """The mean silhouette; of many rows that of a sample, each beside all rows."""
    rows = validity.sampled(labels.size)
    silhouettes = validity.silhouettes(x, labels, rows, square)
    return mean("silhouette", silhouettes, draws._replace(group=draws.group[rows]))


def _calinski_harabasz(squares: Vector, between: Vector, k: int, draws: Resamples) -> Metric:
    """Scatter between clusters over that within, each by its degrees of freedom."""
    n = squares.size
    scale = (n - k) / (k - 1) if 1 < k < n else math.nan
    return bootstrapped(
        "calinski_harabasz",
        scale * ratio(between.sum(), squares.sum()),
        scale * ratio(draws.sums(between), draws.sums(squares)),
        n,
    )


def _davies_bouldin(distances: Vector, labels: Labels, centres: Matrix, draws: Resamples) -> Iterator[Metric]:
    """distances: (n,) to the own centre. None for more than MOST_CLUSTERS."""
    k = len(centres)
    if k > MOST_CLUSTERS:
        return
    sums, counts = Rows(draws, distances).tally(labels, k), Rows(draws).tally(labels, k)
    spread = np.vstack([ratio(sums.total, counts.total), ratio(draws.counts @ sums.units, draws.counts @ counts.units)])
    indices_by_draw = validity.davies_bouldin(spread, centres)
    yield bootstrapped("davies_bouldin", indices_by_draw[0], indices_by_draw[1:], labels.size)
