"""Metrics of predictions, task by task: every metric a function of sums over rows, with its error bar.

In a report all rows count once: row weights state what matters to the fit, a metric shows what a new row
meets. Weights are for metrics of a client's own pairs.
A metric that is 0/0 is null, never 0 (LION 3.3).
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.contract.labels import Class
from app.ml.evaluation.auc import areas
from app.ml.evaluation.confusion_matrix import ConfusionCell, ConfusionMatrix
from app.ml.evaluation.report import RejectionCurve
from app.ml.numerics.ensembles.agreement import ROUNDING
from app.ml.numerics.linear_algebra.solve import near_one
from app.ml.statistics.intervals import CONFIDENCE, Resamples, ratio
from app.ml.statistics.metric_value import Metric, bootstrapped, macro, root_mean_squared
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
    unit = near_one(float(np.abs(centred).max(initial=0.0)))
    centred, squares = centred * unit, (error * unit) ** 2
    variation = rows.sums(centred**2) - ratio(rows.sums(centred) ** 2, rows.sums(np.ones(truth.size)))
    r2 = 1 - ratio(rows.total(squares), rows.total(centred**2))
    r2_drawn = 1 - ratio(rows.sums(squares), variation)
    return [
        _rmse(error, rows),
        mean("mae", np.abs(error), draws, weights),
        bootstrapped("r2", r2, r2_drawn, truth.size).model_copy(update={"note": R2}),
    ]


def uncentred_r2(truth: Vector, predicted: Vector, rows: Rows) -> Metric:
    """R² of a fit without an intercept, which is compared with 0 and not with a mean; null where all targets are 0."""
    unit = near_one(float(np.abs(truth).max(initial=0.0)))
    squares, sizes = ((predicted - truth) * unit) ** 2, (truth * unit) ** 2
    value = 1 - ratio(rows.total(squares), rows.total(sizes))
    drawn = 1 - ratio(rows.sums(squares), rows.sums(sizes))
    return bootstrapped("r2_uncentred", value, drawn, truth.size).model_copy(update={"note": R2_UNCENTRED})


def _rmse(error: Vector, rows: Rows) -> Metric:
    """By χ² where all rows count the same, else by the bootstrap; without draws, without bounds."""
    if rows.weights is None and rows.draws.counts.size:
        return root_mean_squared("rmse", error)
    squares = error**2
    return bootstrapped("rmse", np.sqrt(rows.mean(squares)), np.sqrt(rows.means(squares)), error.size)


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
    accuracy, *others = decisions(truth, assigned, classes, draws, weights)
    return [
        accuracy,
        *(_of_degrees(truth.size) if degrees else losses(truth, probabilities, draws, weights)),
        *areas(truth, probabilities, classes, Rows(draws, weights)),
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


def decisions(
    truth: Labels, assigned: Labels, classes: Sequence[Class], draws: Resamples, weights: Vector | None = None
) -> list[Metric]:
    """Accuracy, balanced accuracy and MCC; macro means of precision, recall and F1, then these of each class.

    truth, assigned: codes (n,). A macro mean leaves out the classes for which the metric is undefined; balanced
    accuracy is that of recall. MCC is that of k classes, R_K (Gorodkin 2004, Comput. Biol. Chem. 28:367), and undefined
    where only one class is true or only one is assigned.
    """
    n, k, rows = truth.size, len(classes), Rows(draws, weights)
    right = assigned == truth
    hits, given, there = (rows.tally(codes, k) for codes in (np.where(right, truth, -1), assigned, truth))
    scores = ratio(2 * hits.total, given.total + there.total)
    drawn = ratio(2 * hits.drawn, given.drawn + there.drawn)
    fewest = int(there.rows[there.rows > 0].min())
    precision = rows.mean_share("precision", hits, given, assigned)
    recall = rows.mean_share("recall", hits, there, truth)
    f1 = bootstrapped("f1", _average(scores), _average(drawn), n, trials=fewest)
    correlation = _correlation(hits.total, given.total, there.total), _correlation(hits.drawn, given.drawn, there.drawn)
    metrics = [
        rows.share("accuracy", rows.tally(right - 1, 1), rows.tally(np.zeros(n, np.intp), 1)),
        recall.model_copy(update={"name": "balanced_accuracy"}),
        bootstrapped("mcc", *correlation, n, trials=fewest),
        *map(macro, (precision, recall, f1)),
    ]
    for j, label in enumerate(map(str, classes)):
        least = int(min(given.rows[j], there.rows[j]))
        metrics += [
            rows.share("precision", hits, given, j, label),
            rows.share("recall", hits, there, j, label),
            bootstrapped("f1", scores[j], drawn[:, j], n, label, trials=least),
        ]
    return metrics


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
    whole, part, hits = (rows.tally(kept - 1, 1) for kept in (np.ones_like(right), kept_rows, kept_rows & right))
    return [rows.share("coverage", part, whole), rows.share("selective_accuracy", hits, part)]


def projection(x: Matrix, restored: Matrix, centre: Vector, draws: Resamples) -> list[Metric]:
    """Mean squared distance of rows (n, d) to what their coordinates restore, and the share of variance kept.

    centre: (d,) the mean of the training rows, the best guess without any coordinates.
    """
    lost, variation = ((x - restored) ** 2).sum(axis=1), ((x - centre) ** 2).sum(axis=1)
    kept = 1 - ratio(lost.sum(), variation.sum())
    return [
        mean("reconstruction_error", lost, draws),
        bootstrapped("explained_variance", kept, 1 - ratio(draws.sums(lost), draws.sums(variation)), lost.size),
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
    return bootstrapped(name, rows.mean(values), rows.means(values), values.size, confidence=confidence)


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
    found = np.flatnonzero(counts)
    found = found[np.lexsort((-counts[found], found // k == found % k))][:MOST_CELLS]
    return [
        ConfusionCell(
            truth=cell // k,
            assigned=cell % k,
            count=int(counts[cell]),
            rows=rows[starts[cell] : starts[cell] + min(counts[cell], examples)].tolist(),
        )
        for cell in found.tolist()
    ]


def _correlation(hits: Matrix, given: Matrix, there: Matrix) -> Matrix:
    """Correlation of assigned and true classes, from right, assigned and true counts (…, k)."""
    total = there.sum(axis=-1)
    cross = hits.sum(axis=-1) * total - (given * there).sum(axis=-1)
    spreads = [total**2 - (counts**2).sum(axis=-1) for counts in (given, there)]
    return ratio(cross, np.sqrt(np.maximum(spreads[0], 0) * np.maximum(spreads[1], 0)))


def _average(scores: Matrix) -> Matrix:
    """Over the last axis, leaving out NaN."""
    return ratio(np.nansum(scores, axis=-1), np.isfinite(scores).sum(axis=-1))
