"""Losses of single rows whose mean is a metric, so that two models can be compared row by row.

A loss is the lower the better: the mean loss of rows is the metric, its square (rmse), or what is missing from 1
(accuracy, balanced_accuracy, roc_auc, r2). The loss of a row by roc_auc is its placement value: the share of rows of
the other class that are ranked wrongly beside it.

Reference: Pepe & Cai (2004), Biometrics 60:528, for placement values.
"""

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.contract.task import PredictionKind
from app.ml.statistics.metric_value import MEASURES

MIN_PROBABILITY = 1e-15
"""Smallest probability that a logarithm is taken of."""
OF_NUMBERS = "rmse", "mae", "r2"
OF_CLASSES = "log_loss", "brier", "accuracy", "balanced_accuracy", "roc_auc"
MISSING_FROM_ONE = frozenset({"r2", "accuracy", "balanced_accuracy", "roc_auc"})


def metrics_of(kind: PredictionKind) -> tuple[str, ...]:
    """Names of the metrics of these predictions that are means over rows."""
    return {PredictionKind.NUMBER: OF_NUMBERS, PredictionKind.PROBABILITIES: OF_CLASSES}.get(kind, ())


def row_losses(metric: str, truth: Vector | Labels, predicted: NDArray[np.floating]) -> Vector:
    """(n,) the loss of each row.

    truth: (n,) numbers, or class codes. predicted: (n,) numbers, or (n, k) probabilities.
    """
    values = np.asarray(predicted, np.float64)
    if metric in OF_NUMBERS:
        return _of_numbers(metric, np.asarray(truth, np.float64), values)
    codes = np.asarray(truth, np.intp)
    match metric:
        case "log_loss":
            logarithms: Vector = -np.log(np.maximum(values[np.arange(codes.size), codes], MIN_PROBABILITY))
            return logarithms
        case "brier":
            squares: Vector = ((values - np.eye(values.shape[1])[codes]) ** 2).sum(axis=1)
            return squares
        case "accuracy":
            wrong: Vector = (values.argmax(axis=1) != codes).astype(np.float64)
            return wrong
        case "balanced_accuracy":
            counts = np.bincount(codes, minlength=values.shape[1])
            share = codes.size / (np.count_nonzero(counts) * counts[codes])
            weighted: Vector = (values.argmax(axis=1) != codes) * share
            return weighted
    return _placements(codes, values)


def metric_of(metric: str, losses: Vector) -> float:
    """The metric of rows with these losses (n,); NaN without rows."""
    if not losses.size:
        return np.nan
    mean = float(losses.mean())
    if metric == "rmse":
        return float(np.sqrt(mean))
    return 1.0 - mean if metric in MISSING_FROM_ONE else mean


def worse_by(metric: str, value: Vector, best: Vector) -> Vector:
    """The differences by which values of a metric are worse than others."""
    return MEASURES[metric].better * (best - value)


def _of_numbers(metric: str, truth: Vector, values: Vector) -> Vector:
    if metric == "mae":
        return np.abs(truth - values)
    squares = (truth - values) ** 2
    if metric == "rmse":
        return squares
    spread = float(((truth - truth.mean()) ** 2).mean()) if truth.size else 0.0
    return squares / spread if spread > 0 else np.full(truth.size, np.nan)


def _placements(codes: Labels, values: Matrix) -> Vector:
    """Means over classes, each against the others; of two classes both are the same."""
    n, losses, classes = codes.size, np.zeros(codes.size), 0
    for code in range(values.shape[1]) if values.shape[1] > 2 else (1,):
        inside = codes == code
        if not 0 < (positive := int(inside.sum())) < n:
            continue
        classes += 1
        wrong = _ranked_wrongly(values[:, min(code, values.shape[1] - 1)], inside)
        losses += 0.5 * n * wrong / np.where(inside, positive, n - positive)
    return losses / classes if classes else np.full(n, np.nan)


def _ranked_wrongly(scores: Vector, inside: NDArray[np.bool_]) -> Vector:
    """(n,) share of the rows of the other side that are ranked wrongly beside each, half of those that are equal."""
    high, low = np.sort(scores[inside]), np.sort(scores[~inside])
    below = (np.searchsorted(high, scores, "left") + np.searchsorted(high, scores, "right")) / (2 * high.size)
    above = 1 - (np.searchsorted(low, scores, "left") + np.searchsorted(low, scores, "right")) / (2 * low.size)
    return np.where(inside, above, below)
