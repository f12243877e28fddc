"""Rows of plots of a training: a sample of the training rows with what the fit finds of each."""

from typing import Any

import numpy as np

from app.ml.contract.algorithm import Data, Labels, Vector
from app.ml.contract.columns import ColumnKind
from app.ml.contract.labels import Class
from app.ml.contract.sparse_rows import sparse
from app.ml.contract.task import PredictionKind
from app.ml.evaluation.cluster_profiles import ClusterProfiles, cluster_profiles
from app.ml.evaluation.predictions import Predictions
from app.ml.evaluation.row_sample import MOST_ROWS, RowAxis, RowSample, written
from app.ml.evaluation.splits import evenly
from app.ml.numerics.clustering import validity
from app.ml.numerics.linear_algebra.leading_components import leading_components
from app.ml.statistics.intervals import student_t
from app.ml.statistics.metric_value import Metric, metric
from app.ml.training.fitting.fit import Fitted
from app.ml.training.rows.training_set import TrainingSet

STREAM = 11
"""Stream of the seed's random numbers, so that no other draw of the training changes."""
AXES = 2
LOG_DENSITY = "log_density"
"""Output of clusterings that have a density."""


def plotted_rows(training_set: TrainingSet, fitted: Fitted, predicted: Predictions, seed: int) -> RowSample | None:
    """Sample of the training rows of a task without a target of its own; None for others, and for items of edges."""
    data = fitted.data
    if training_set.task.supervised or data.by_item or data.numbers is None:
        return None
    rng = np.random.Generator(np.random.PCG64([seed, STREAM]))
    n = len(data.x)
    rows = np.sort(rng.choice(n, min(n, MOST_ROWS), replace=False))
    with np.errstate(over="ignore", invalid="ignore"):
        fields = _fields(fitted, predicted, rows)
    return RowSample(
        rows=data.numbers[rows].tolist(),
        items=None if data.items is None else [str(item) for item in data.items[rows]],
        rows_train=n,
        classes=_classes(training_set, fitted, rows),
        **fields,
    )


def profiles(training_set: TrainingSet, predicted: Predictions, rows: Labels) -> ClusterProfiles | None:
    """Profiles of clusters by the numeric columns of the table; None for other tasks, and without such columns.

    rows: the training rows, in the order of the predictions.
    """
    if not training_set.task.labels or (training_set.relations is not None and training_set.relations.by_item):
        return None
    places = training_set.target.rows[rows]
    raw = training_set.raw
    numeric = [index for index, column in enumerate(raw.columns) if column.kind == ColumnKind.NUMERIC]
    if training_set.is_square or not numeric:
        return None
    return cluster_profiles({raw.columns[index].name: raw.values[places, index] for index in numeric}, predicted.values)


def _fields(fitted: Fitted, predicted: Predictions, rows: Labels) -> dict[str, Any]:
    data, values = fitted.data, predicted.values
    match data.task.record.prediction:
        case PredictionKind.COORDINATES:
            return {"axes": _axes(values[rows][:, :AXES])}
        case PredictionKind.LOG_DENSITY:
            return {"log_densities": written(values[rows])}
        case PredictionKind.LABEL:
            return _of_clusters(data, values, rows) | _densities(fitted, rows)
    return {}


def _axes(coordinates: Any, shares: Vector | None = None) -> list[RowAxis]:
    column_shares = [None] * coordinates.shape[1] if shares is None else shares.tolist()
    return [
        RowAxis(name=f"component {place}", variance_share=share, values=written(values))
        for place, (values, share) in enumerate(zip(coordinates.T, column_shares, strict=True), 1)
    ]


def _of_clusters(data: Data, labels: Labels, rows: Labels) -> dict[str, Any]:
    fields: dict[str, Any] = {"clusters": labels[rows].tolist()}
    if sparse(data.x) is not None:
        return fields
    silhouettes = _silhouettes(data, labels, rows)
    if data.square is None and not data.levels.any() and np.isfinite(data.x[rows]).all():
        fields["axes"] = _axes(*leading_components(data.x[rows], AXES))
    if np.isfinite(silhouettes).any():
        means = _mean_silhouettes(silhouettes, labels[rows])
        fields |= {"silhouettes": written(silhouettes), "cluster_silhouettes": means}
    return fields


def _silhouettes(data: Data, labels: Labels, rows: Labels) -> Vector:
    """(m,) of these rows; NaN for some of them where the table is large."""
    most = max(validity.MIN_SAMPLE_ROWS, validity.DISTANCES // len(data.x))
    measured = evenly(rows.size, most)
    values = np.full(rows.size, np.nan)
    values[measured] = validity.silhouettes(data.x, labels, rows[measured], data.square)
    return values


def _mean_silhouettes(silhouettes: Vector, labels: Labels) -> list[Metric]:
    is_measured = np.isfinite(silhouettes)
    groups = {int(label): silhouettes[is_measured & (labels == label)] for label in np.unique(labels[is_measured])}
    return [
        metric(
            "silhouette",
            float(values.mean()),
            student_t(values),
            "student-t (approximate)",
            n=values.size,
            label=str(cluster),
        )
        for cluster, values in groups.items()
    ]


def _densities(fitted: Fitted, rows: Labels) -> dict[str, Any]:
    algorithm, params, state = fitted.learned.algorithm, fitted.learned.params, fitted.learned.state
    if LOG_DENSITY not in algorithm.outputs:
        return {}
    return {"log_densities": written(algorithm.outputs[LOG_DENSITY].compute(params, state, fitted.data.x[rows]))}


def _classes(training_set: TrainingSet, fitted: Fitted, rows: Labels) -> list[Class | None] | None:
    """Classes that the fit learns from, or that its clusters are compared with."""
    data, compared = fitted.data, training_set.reference
    if data.targets.shape[1]:
        return [training_set.classes[code] for code in data.codes[rows].tolist()]
    if compared is None or fitted.reference is None:
        return None
    return [compared.names[code] if code >= 0 else None for code in fitted.reference[rows].tolist()]
