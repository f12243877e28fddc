"""Metrics of predictions, task by task: every metric a function of sums over rows, with its error bar.

In a report all rows count once: row weights state what matters to the fit, a metric shows what a new row
meets. Weights are for metrics of a client's own pairs.
A metric that is 0/0 is null, never 0 (LION 3.3).
"""

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.contract.labels import Class
from app.ml.evaluation.auc import areas
from app.ml.evaluation.confusion_matrix import ConfusionCell, ConfusionMatrix
from app.ml.evaluation.decisions import decisions, with_few_cases
from app.ml.evaluation.report import RejectionCurve
from app.ml.numerics.ensembles.agreement import ROUNDING
from app.ml.numerics.linear_algebra.solve import near_one
from app.ml.statistics.intervals import CONFIDENCE, Bounds, Resamples, ratio
from app.ml.statistics.metric_value import (
    MEASURES,
    Metric,
    bootstrapped,
    of_log_ratio,
)
from app.ml.statistics.resampling import Rows

Truths: TypeAlias = NDArray[np.bool_]

THRESHOLDS = 50
"""Points of the accuracy-rejection curve: steps of 0.01 for two classes."""
MOST_CELLS = 1000
"""Cells of a confusion matrix, with examples."""
R2 = "1 - SSE/SST, with SST the sum of squares about the mean of the evaluated rows."
R2_UNCENTRED = (
    "1 - SSE/sum(y^2), the R2 of a fit without an intercept: compare it only with that of other such fits, not with r2."
)
NO_PROBABILITIES = (
    "The model's shares of classes are degrees or votes, not probabilities: only their order and the largest count."
)


def regression(truth: Vector, predicted: Vector, draws: Resamples, weights: Vector | None = None) -> list[Metric]:
    """RMSE (LION 3.2), MAE and R2 of predictions (n,). R2 is null for a constant target."""
    rows, error = Rows(draws, weights), predicted - truth
    centred = truth - rows.mean(truth) if np.ptp(truth) else np.zeros_like(truth)
    return [
        _rmse(error, rows),
        mean("mae", np.abs(error), draws, weights),
        _r2("r2", error, centred, rows, R2),
    ]


def uncentred_r2(truth: Vector, predicted: Vector, rows: Rows) -> Metric:
    """R² of a fit without an intercept, which is compared with 0 and not with a mean; null where all targets are 0."""
    return _r2("r2_uncentred", predicted - truth, truth, rows, R2_UNCENTRED)


def _r2(name: str, error: Vector, deviation: Vector, rows: Rows, definition: str) -> Metric:
    unit = near_one(float(np.abs(deviation).max(initial=0.0)))
    squares, variation = (error * unit) ** 2, (deviation * unit) ** 2
    value = 1 - float(ratio(rows.total(squares), rows.total(variation)))
    bounds = rows.log_ratio(squares, variation)
    turned = None if bounds is None else Bounds(-math.expm1(bounds.upper), -math.expm1(bounds.lower))
    return of_log_ratio(name, value, turned, error.size, worth=rows.worth(), definition=definition)


def _rmse(error: Vector, rows: Rows) -> Metric:
    """Without draws, without bounds."""
    size = float(np.abs(error).max(initial=0.0))
    scaled = (error / size) ** 2 if 0 < size < math.inf else np.zeros_like(error)
    value = size * math.sqrt(rows.mean(scaled)) if 0 < size < math.inf else size
    bounds = rows.log_ratio(scaled, np.ones_like(error))
    ends = None if bounds is None else Bounds(*(size * math.exp(end / 2) for end in bounds))
    return of_log_ratio("rmse", value, ends, error.size, worth=rows.worth())


def classification(
    truth: Labels,
    probabilities: Matrix,
    classes: Sequence[Class],
    draws: Resamples,
    weights: Vector | None = None,
    *,
    assigned: Labels | None = None,
    degrees: bool = False,
) -> list[Metric]:
    """Metrics of probabilities, besides those of `decisions` for the assigned classes.

    truth, assigned: codes (n,); unless given, the most probable class is assigned, the first on a tie.
    probabilities: (n, k). degrees: that they are not probabilities (`Algorithm.degrees`), but rank rows.
    """
    assigned = probabilities.argmax(axis=1) if assigned is None else assigned
    rows = Rows(draws, weights)
    accuracy, *others = decisions(truth, assigned, classes, draws, weights)
    return [
        accuracy,
        *(_of_degrees(truth.size) if degrees else losses(truth, probabilities, draws, weights)),
        *with_few_cases(areas(truth, probabilities, classes, rows), truth, len(classes), rows),
        *others,
    ]


def losses(
    truth: Labels,
    probabilities: Matrix,
    draws: Resamples,
    weights: Vector | None = None,
    confidence: float = CONFIDENCE,
) -> list[Metric]:
    """Log loss and Brier score of probabilities (n, k)."""
    n, k = probabilities.shape
    squares = (probabilities**2).sum(axis=1) - 2 * probabilities[np.arange(n), truth] + 1
    return [
        mean("log_loss", log_losses(truth, probabilities), draws, weights, confidence),
        mean("brier", squares / 2 if k == 2 else squares, draws, weights, confidence),
    ]


def log_losses(truth: Labels, probabilities: Matrix) -> Vector:
    """(n,) the negative logarithm of the probability of the true class of each row; that of epsilon where it is 0."""
    return -np.log(np.maximum(probabilities[np.arange(truth.size), truth], np.finfo(np.float64).eps))


def _of_degrees(n: int) -> list[Metric]:
    """In place of `losses`."""
    names = "log_loss", "brier"
    return [Metric(name=name, value=None, n=n, display="undefined", note=NO_PROBABILITIES) for name in names]


def rejection(top: Vector, right: Truths, classes: int, rows: Rows) -> RejectionCurve:
    """Accuracy of the rows whose largest probability is at least a threshold, from 1/k up (LION 11.7).

    top: (n,) the largest probability of each row. right: (n,) whether its class is the true one.
    """
    thresholds = np.linspace(1 / classes, 1, THRESHOLDS, endpoint=False).round(12)
    passed = np.searchsorted(thresholds - ROUNDING, top, side="right") - 1  # the last threshold that it reaches
    accepted = rows.tally(passed, THRESHOLDS).from_last()
    hits = rows.tally(np.where(right, passed, -1), THRESHOLDS).from_last()
    result = [rows.share("accuracy", hits, accepted, place) for place in range(THRESHOLDS)]
    return RejectionCurve(
        thresholds=thresholds.tolist(),
        rejected=(1 - accepted.total / rows.total(np.ones(top.size))).clip(0).tolist(),
        accuracy=[metric.value for metric in result],
        lower=[metric.lower for metric in result],
        upper=[metric.upper for metric in result],
        interval=next((metric.interval for metric in result if metric.interval), None),
        display=[metric.display for metric in result],
    )


def selective(right: Truths, kept_rows: Truths, rows: Rows) -> list[Metric]:
    """Metrics of a model that may abstain (LION 11.7): the share of rows it classifies, and its accuracy on them.

    right: (n,) whether the most probable class is the true one.
    """
    whole, part, hits = (
        rows.tally(counted_rows - 1, 1) for counted_rows in (np.ones_like(right), kept_rows, kept_rows & right)
    )
    return [rows.share("coverage", part, whole), rows.share("selective_accuracy", hits, part)]


def projection(x: Matrix, restored: Matrix, centre: Vector, draws: Resamples) -> list[Metric]:
    """Mean squared distance of rows (n, d) to what their coordinates restore, and the share of variance kept.

    centre: (d,) the mean of the training rows, the best guess without any coordinates.
    """
    lost, variation = ((x - restored) ** 2).sum(axis=1), ((x - centre) ** 2).sum(axis=1)
    retained = 1 - ratio(lost.sum(), variation.sum())
    return [
        mean("reconstruction_error", lost, draws),
        bootstrapped("explained_variance", retained, 1 - ratio(draws.sums(lost), draws.sums(variation)), lost.size),
    ]


def separation(coordinates: Matrix, codes: Labels, k: int, draws: Resamples) -> Metric:
    """Share of the variation of coordinates (n, p) that lies between the classes: the correlation ratio η²."""
    z, n = coordinates - coordinates.mean(axis=0), len(coordinates)
    members = [(codes == code) * 1.0 for code in range(k)]

    def scatter(rows: Vector) -> Vector:
        """(1 + draws,) of these rows about their mean: of all of them, then of each draw."""
        sums = [np.append(values.sum(), draws.sums(values)) for values in (rows, *(rows[:, None] * z).T)]
        squares = rows * np.square(z).sum(axis=1)
        about_zero = np.append(squares.sum(), draws.sums(squares))
        return np.asarray(about_zero - ratio(np.square(sums[1:]).sum(axis=0), np.where(sums[0] > 0, sums[0], 1.0)))

    shares = 1 - ratio(np.sum([scatter(rows) for rows in members], axis=0), scatter(np.ones(n)))
    return bootstrapped("separation", shares[0], shares[1:], n)


def mean(
    name: str, values: Vector, draws: Resamples, weights: Vector | None = None, confidence: float = CONFIDENCE
) -> Metric:
    """The average of a value per row."""
    rows = Rows(draws, weights)
    if MEASURES[name].lowest < 0:
        return bootstrapped(name, rows.mean(values), rows.means(values), values.size, confidence=confidence)
    bounds = rows.log_ratio(values, np.ones(values.size), confidence)
    ends = None if bounds is None else Bounds(*map(math.exp, bounds))
    return of_log_ratio(name, rows.mean(values), ends, values.size, worth=rows.worth(), confidence=confidence)


def confusion(
    truth: Labels, assigned: Labels, classes: Sequence[Class], *, numbers: Labels | None = None, examples: int = 0
) -> ConfusionMatrix:
    """Counts of (true class, assigned class) (LION 3.3), with the first `examples` rows of every cell that has any.

    numbers: (n,) what the rows are called; absent: 0 … n-1.
    """
    k = len(classes)
    cells = truth * k + assigned
    counts = np.bincount(cells, minlength=k * k)
    listed = _examples(cells, counts, numbers, k, examples) if examples else None
    return ConfusionMatrix(classes=list(classes), counts=counts.reshape(k, k).tolist(), cells=listed)


def _examples(cells: Labels, counts: Labels, numbers: Labels | None, k: int, examples: int) -> list[ConfusionCell]:
    """Mistakes before hits, the frequent first."""
    order = np.argsort(cells, kind="stable")
    rows = order if numbers is None else numbers[order]
    starts = np.cumsum(counts) - counts
    used_cells = np.flatnonzero(counts)
    used_cells = used_cells[np.lexsort((-counts[used_cells], used_cells // k == used_cells % k))][:MOST_CELLS]
    return [
        ConfusionCell(
            truth=cell // k,
            assigned=cell % k,
            count=int(counts[cell]),
            rows=rows[starts[cell] : starts[cell] + min(counts[cell], examples)].tolist(),
        )
        for cell in used_cells.tolist()
    ]
