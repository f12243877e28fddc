"""Cards of the clusters that a fit has found: sizes, the most distinctive columns, and the rows nearest to prototypes.

Columns are those of the table, before scaling. The cost is bounded: at most `MOST_COMPARED` rows, evenly spaced, are
compared, and no table of clusters by columns is held.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Data, Labels, Matrix, Vector
from app.ml.contract.sparse_rows import sparse
from app.ml.evaluation.splits import evenly
from app.ml.models.cluster_description import ClusterCards, ClusterDescription
from app.ml.numerics.clustering.cluster_normals import cluster_normals
from app.ml.numerics.neighbours.distances import norms
from app.ml.numerics.row_blocks import blocks
from app.ml.preparation.preparation import Preparation
from app.ml.statistics.cluster_contrasts import Contrast, category_contrast, rank_contrast
from app.ml.statistics.intervals import ratio
from app.ml.training.fitting.fit import Fitted
from app.ml.training.rows.training_set import TrainingSet

DISTINCTIVE = 10
"""Columns on a card."""
NEAREST = 5
"""Rows on a card."""
MOST_COMPARED = 50_000
MOST_COUNTS = 5_000_000
"""Counts of categories by clusters; a column with more is not compared."""


def described_clusters(training_set: TrainingSet, fitted: Fitted, rows: Labels) -> ClusterDescription | None:
    """Description of a clustering of these training rows; None of other tasks."""
    if not training_set.task.labels:
        return None
    data, learned = fitted.data, fitted.learned
    labels = np.asarray(learned.predict(data.x), np.intp)
    in_columns = data.square is None and not data.by_item and sparse(data.x) is None
    prototypes = _prototypes(fitted, labels) if in_columns else None
    k = int(labels.max()) + 1 if prototypes is None else len(prototypes)
    with np.errstate(over="ignore", invalid="ignore"):
        distances = _distances(fitted, labels, prototypes)
    nearest = nearest_rows(distances, labels, k)
    contrasts = _contrasts(training_set, fitted.preparation, labels, rows, k) if in_columns else _Columns(k, [])
    numbers = np.arange(len(labels)) if data.numbers is None else data.numbers
    cards = ClusterCards(
        sizes=np.bincount(labels, minlength=k),
        spreads=_spreads(distances, data.weights, labels, k),
        nearest=np.where(nearest < 0, -1, numbers[nearest]),
        items=_items(data, nearest),
        **contrasts.fields(),
    )
    return ClusterDescription(
        cards, None if prototypes is None else cluster_normals(data.x, data.weights, labels, prototypes)
    )


def _prototypes(fitted: Fitted, labels: Labels) -> Matrix:
    """(k, d) those of the algorithm, else the means of the rows."""
    declared, x = fitted.learned.algorithm.prototypes, fitted.data.x
    prototypes = None if declared is None else declared(fitted.learned.params, fitted.fit.state)
    if prototypes is not None:
        return prototypes
    masses = np.bincount(labels, fitted.data.weights)
    sums = np.stack([np.bincount(labels, fitted.data.weights * column) for column in x.T], axis=1)
    return np.where(masses[:, None] > 0, ratio(sums, masses[:, None]), x.mean(axis=0))


def _distances(fitted: Fitted, labels: Labels, prototypes: Matrix | None) -> Vector:
    """(n,) distance of each row to the prototype of its cluster; NaN where there is none."""
    data, learned = fitted.data, fitted.learned
    if prototypes is not None:
        parts = [norms(data.x[part] - prototypes[labels[part]]) for part in blocks(len(labels), data.x.shape[1])]
        return np.sqrt(np.concatenate(parts))
    distance = learned.algorithm.outputs.get("distance")
    if distance is None:
        return np.full(len(labels), np.nan)
    return np.asarray(distance.compute(learned.params, fitted.fit.state, data.x), np.float64)


def _spreads(distances: Vector, weights: Vector, labels: Labels, k: int) -> Vector:
    """(k,) root mean square; NaN without rows."""
    with np.errstate(over="ignore"):
        return np.sqrt(ratio(np.bincount(labels, weights * distances**2, k), np.bincount(labels, weights, k)))


def nearest_rows(distances: Vector, labels: Labels, k: int) -> Labels:
    """(k, NEAREST) places of the rows of each cluster with the smallest distances; -1 where there are fewer."""
    rows_by_distance = np.full((k, NEAREST), -1)
    if np.isnan(distances).all():
        return rows_by_distance
    order = np.lexsort((np.arange(labels.size), distances, labels))
    counts = np.bincount(labels, minlength=k)
    starts = np.cumsum(counts) - counts
    for place in range(NEAREST):
        has = counts > place
        rows_by_distance[has, place] = order[starts[has] + place]
    return rows_by_distance


def _items(data: Data, nearest: Labels) -> NDArray[np.str_] | None:
    return None if data.items is None else np.where(nearest < 0, "", data.items[nearest]).ravel()


class _Columns:
    """The most distinctive columns of each of k clusters, as columns come one by one."""

    def __init__(self, k: int, columns: list[str], compared: int = 0) -> None:
        self._columns, self._compared, self._tests = columns, compared, 0
        shape = (k, min(DISTINCTIVE, len(columns)))
        self._effects, self._rest = np.zeros(shape), np.full((3, *shape), np.nan)
        self._codes = np.full((2, *shape), -1)

    def add(self, place: int, contrast: Contrast) -> None:
        self._tests += int(np.isfinite(contrast.p_values).sum())
        effects = np.nan_to_num(contrast.effects)
        worst = np.abs(self._effects).argmin(axis=1)
        row_numbers = np.arange(worst.size)
        better = np.abs(effects) > np.abs(self._effects[row_numbers, worst])
        cells = row_numbers[better], worst[better]
        self._effects[cells] = effects[better]
        self._codes[0][cells], self._codes[1][cells] = place, contrast.codes[better]
        for table, values in zip(self._rest, (contrast.p_values, contrast.inside, contrast.outside), strict=True):
            table[cells] = values[better]

    def fields(self) -> dict[str, Any]:
        """Fields of the cards."""
        order = np.argsort(-np.abs(self._effects), axis=1, kind="stable")
        tables = (*self._codes, self._effects, *self._rest)
        ordered = [np.take_along_axis(table, order, axis=1) for table in tables]
        names = ("places", "codes", "effects", "p_values", "inside", "outside")
        return {
            "columns": np.array(self._columns, np.str_),
            "tests": self._tests,
            "compared": self._compared,
            **dict(zip(names, ordered, strict=True)),
        }


def _contrasts(training_set: TrainingSet, preparation: Preparation, labels: Labels, rows: Labels, k: int) -> _Columns:
    some = evenly(labels.size, MOST_COMPARED)
    contrasts = _Columns(k, [column.name for column in preparation.inputs], some.size)
    raw = training_set.raw_matrix(preparation, rows[some])
    for place, contrast in _compared(preparation, raw, labels[some], k):
        contrasts.add(place, contrast)
    return contrasts


def _compared(preparation: Preparation, raw: Matrix, labels: Labels, k: int) -> Iterator[tuple[int, Contrast]]:
    for place, column in enumerate(preparation.inputs):
        values = raw[:, place]
        if column.levels is None:
            yield place, rank_contrast(values, labels, k)
        elif (levels := len(preparation.codes.names(place))) * k <= MOST_COUNTS:
            codes = np.where(np.isnan(values), -1, values).astype(np.intp)
            yield place, category_contrast(codes, labels, k, levels)
