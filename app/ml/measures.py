"""How good predictions are, task by task: every figure a function of sums over rows, with its error bar.

In a report all rows count once: row weights say what the fit shall care about, a figure tells what a stranger's row
meets. Weights are for those who ask for figures of their own pairs.
A figure that is 0/0 is null, never 0 (B3.17).
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from app.ml.contract import Labels, Matrix, Vector
from app.ml.figures import bootstrapped, counted, root_mean_squared
from app.ml.intervals import Resamples, ratio
from app.ml.labels import Class
from app.ml.numerics.linalg import near_one
from app.ml.report import ConfusionCell, ConfusionMatrix, Figure, RejectionCurve, ReportCurve
from app.ml.roc import curve, placements
from app.ml.tallies import Rows

Truths: TypeAlias = NDArray[np.bool_]

MANY_CLASSES = 50
"""Beyond, the area under the one-versus-rest curves is null: each class costs a sort of all rows."""
THRESHOLDS = 50
"""Of the accuracy-rejection curve: steps of 0.01 for two classes."""
MOST_CELLS = 1000
"""Of a confusion matrix, with examples."""
FEW_CLASSES = 10
"""Beyond, one-versus-rest curves are not drawn."""


def regression(truth: Vector, predicted: Vector, draws: Resamples, weights: Vector | None = None) -> list[Figure]:
    """RMSE (B3.11), MAE and R2 of predictions (n,). R2 is null for a constant target."""
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
        bootstrapped("r2", r2, r2_drawn, truth.size),
    ]


def _rmse(error: Vector, rows: Rows) -> Figure:
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
) -> list[Figure]:
    """What probabilities tell, beside all that `decisions` tells of the assigned classes.

    truth, assigned: codes (n,); unless given, the most probable class is assigned, the first on a tie.
    probabilities: (n, k).
    """
    n, k = probabilities.shape
    of_truth = probabilities[np.arange(n), truth]
    assigned = probabilities.argmax(axis=1) if assigned is None else assigned
    loss = -np.log(np.maximum(of_truth, np.finfo(np.float64).eps))
    squares = (probabilities**2).sum(axis=1) - 2 * of_truth + 1
    accuracy, *others = decisions(truth, assigned, classes, draws, weights)
    return [
        accuracy,
        mean("log_loss", loss, draws, weights),
        mean("brier", squares / 2 if k == 2 else squares, draws, weights),
        _area(truth, probabilities, Rows(draws, weights)),
        *others,
    ]


def decisions(
    truth: Labels, assigned: Labels, classes: Sequence[Class], draws: Resamples, weights: Vector | None = None
) -> list[Figure]:
    """Accuracy; precision, recall and F1 averaged over classes, then of each class.

    truth, assigned: codes (n,). An average over classes leaves out those for which the figure is undefined.
    """
    n, k, rows = truth.size, len(classes), Rows(draws, weights)
    right = assigned == truth
    hits, given, there = (rows.tally(codes, k) for codes in (np.where(right, truth, -1), assigned, truth))
    scores, drawn = (
        _scores(*counts) for counts in zip(*((t.total, t.drawn) for t in (hits, given, there)), strict=True)
    )
    fewest = int(there.rows[there.rows > 0].min())
    figures = [
        rows.share("accuracy", rows.tally(right - 1, 1), rows.tally(np.zeros(n, np.intp), 1)),
        *(bootstrapped(name, _average(scores[name]), _average(drawn[name]), n, trials=fewest) for name in scores),
    ]
    for j, label in enumerate(map(str, classes)):
        least = int(min(given.rows[j], there.rows[j]))
        figures += [
            rows.share("precision", hits, given, j, label),
            rows.share("recall", hits, there, j, label),
            bootstrapped("f1", scores["f1"][j], drawn["f1"][:, j], n, label, trials=least),
        ]
    return figures


def rejection(top: Vector, right: Truths, classes: int, rows: Rows) -> RejectionCurve:
    """Accuracy of the rows whose largest probability is above a threshold, from 1/k up (E15).

    top: (n,) the largest probability of each row. right: (n,) whether its class is the true one.
    """
    thresholds = np.linspace(1 / classes, 1, THRESHOLDS, endpoint=False).round(12)
    passed = np.searchsorted(thresholds, top) - 1  # the last threshold below it
    accepted = rows.tally(passed, THRESHOLDS).from_last()
    hits = rows.tally(np.where(right, passed, -1), THRESHOLDS).from_last()
    told = [rows.share("accuracy", hits, accepted, place) for place in range(THRESHOLDS)]
    return RejectionCurve(
        thresholds=thresholds.tolist(),
        rejected=(1 - accepted.total / rows.total(np.ones(top.size))).clip(0).tolist(),
        accuracy=[figure.value for figure in told],
        lower=[figure.lower for figure in told],
        upper=[figure.upper for figure in told],
        interval=next((figure.interval for figure in told if figure.interval), None),
        display=[figure.display for figure in told],
    )


def selective(right: Truths, answered: Truths, rows: Rows) -> list[Figure]:
    """Of a model that may say that it does not know (E18): the share of rows it answers, and its accuracy on them.

    right: (n,) whether the most probable class is the true one.
    """
    whole, part, hits = (rows.tally(kept - 1, 1) for kept in (np.ones_like(right), answered, answered & right))
    return [rows.share("coverage", part, whole), rows.share("selective_accuracy", hits, part)]


def clustering(x: Matrix, labels: Labels, centres: Matrix, draws: Resamples) -> list[Figure]:
    """Squared distances to the own centre, averaged and summed (K4), and the size of each cluster.

    x: (n, d). labels: (n,) rows of `centres` (k, d).
    """
    n = labels.size
    squares = ((x - centres[labels]) ** 2).sum(axis=1)
    return [
        mean("quantisation_error", squares, draws),
        bootstrapped("inertia", squares.sum(), n * draws.sums(squares) / draws.size(), n),
        *(counted("size", int(size), n, str(j)) for j, size in enumerate(np.bincount(labels, minlength=len(centres)))),
    ]


def projection(x: Matrix, restored: Matrix, centre: Vector, draws: Resamples) -> list[Figure]:
    """Mean squared distance of rows (n, d) to what their coordinates restore, and the share of variance kept.

    centre: (d,) the mean of the training rows, the best guess without any coordinates.
    """
    lost, variation = ((x - restored) ** 2).sum(axis=1), ((x - centre) ** 2).sum(axis=1)
    kept = 1 - ratio(lost.sum(), variation.sum())
    return [
        mean("reconstruction_error", lost, draws),
        bootstrapped("explained_variance", kept, 1 - ratio(draws.sums(lost), draws.sums(variation)), lost.size),
    ]


def mean(name: str, values: Vector, draws: Resamples, weights: Vector | None = None) -> Figure:
    """The average of a value per row."""
    rows = Rows(draws, weights)
    return bootstrapped(name, rows.mean(values), rows.means(values), values.size)


def confusion(
    truth: Labels, assigned: Labels, classes: Sequence[Class], *, numbers: Labels | None = None, examples: int = 0
) -> ConfusionMatrix:
    """Counts of (true class, assigned class) (B3.18), with the first `examples` rows of every cell that has any.

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


def roc_curves(
    truth: Labels, probabilities: Matrix, classes: Sequence[Class], weights: Vector | None = None
) -> list[ReportCurve]:
    """The ROC curve of the second of two classes, or of each of a few classes against the rest."""
    k = probabilities.shape[1]
    names = {1: "roc"} if k == 2 else {j: f"roc {label}" for j, label in enumerate(classes)}
    if not 2 <= k <= FEW_CLASSES:
        return []
    drawn = [(name, *curve(probabilities[:, j], truth == j, weights)) for j, name in names.items()]
    return [ReportCurve(name=name, x=x.tolist(), y=y.tolist()) for name, x, y in drawn if x.size]


def _scores(hits: Matrix, given: Matrix, there: Matrix) -> dict[str, Matrix]:
    """Of right, assigned and true counts (…, k)."""
    return {
        "precision": ratio(hits, given),
        "recall": ratio(hits, there),
        "f1": ratio(2 * hits, given + there),
    }


def _average(scores: Matrix) -> Matrix:
    """Over the last axis, leaving out NaN."""
    return ratio(np.nansum(scores, axis=-1), np.isfinite(scores).sum(axis=-1))


def _area(truth: Labels, probabilities: Matrix, rows: Rows) -> Figure:
    """Area under the ROC curve, averaged one-versus-rest when there are more than two classes.

    The value is exact. Its replicates are the first-order terms of the resampled area (the mean placement of positives
    plus that of negatives minus the area), which are sums over rows like everything else.
    """
    n, k = probabilities.shape
    areas, drawn, fewest = [np.nan], [np.full(rows.draws.counts.shape[0], np.nan)], n
    for j in range(k == 2, k if 2 <= k <= MANY_CLASSES else 0):
        positive = truth == j
        if 0 < positive.sum() < n:
            place = placements(probabilities[:, j], positive, rows.weights)
            sides = [ratio(rows.sums(place * side), rows.sums(side * 1.0)) for side in (positive, ~positive)]
            areas.append(float(ratio(rows.total(place * positive), rows.total(positive * 1.0))))
            drawn.append(sides[0] + sides[1] - areas[-1])
            fewest = min(fewest, int(positive.sum()), int((~positive).sum()))
    return bootstrapped("roc_auc", _average(np.array(areas)), _average(np.stack(drawn, axis=-1)), n, trials=fewest)
