"""How good predictions are, task by task: every figure a function of sums over rows, with its error bar.

All rows count once: row weights say what the fit shall care about, a figure tells what a stranger's row meets.
A figure that is 0/0 is null, never 0 (B3.17).
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from app.ml.contract import Labels, Matrix, Vector
from app.ml.figures import bootstrapped, counted, proportion
from app.ml.intervals import Resamples, ratio
from app.ml.report import ConfusionMatrix, Figure, ReportCurve
from app.ml.roc import curve, placements

Class: TypeAlias = bool | int | float | str

MANY_CLASSES = 50
"""Beyond, the area under the one-versus-rest curves is null: each class costs a sort of all rows."""
FEW_CLASSES = 10
"""Beyond, one-versus-rest curves are not drawn."""


def regression(truth: Vector, predicted: Vector, draws: Resamples) -> list[Figure]:
    """RMSE (B3.11), MAE and R2 of predictions (n,). R2 is null for a constant target."""
    error = predicted - truth
    centred = truth - truth.mean() if np.ptp(truth) else np.zeros_like(truth)
    variation = draws.sums(centred**2) - draws.sums(centred) ** 2 / draws.size()
    r2, r2_drawn = 1 - ratio((error**2).sum(), (centred**2).sum()), 1 - ratio(draws.sums(error**2), variation)
    return [
        bootstrapped("rmse", np.sqrt((error**2).mean()), np.sqrt(draws.sums(error**2) / draws.size()), truth.size),
        mean("mae", np.abs(error), draws),
        bootstrapped("r2", r2, r2_drawn, truth.size),
    ]


def classification(truth: Labels, probabilities: Matrix, classes: Sequence[Class], draws: Resamples) -> list[Figure]:
    """Accuracy, log-loss and ROC AUC; precision, recall and F1 averaged over classes, then of each class.

    truth: codes (n,). probabilities: (n, k). The assigned class is the most probable, the first one on a tie.
    An average over classes leaves out those for which the figure is undefined.
    """
    n, k = probabilities.shape
    assigned = probabilities.argmax(axis=1)
    kinds = np.where(assigned == truth, truth, -1), assigned, truth
    counts = [_tally(codes, k) for codes in kinds]
    scores, drawn = _scores(*counts), _scores(*(draws.tallies(codes, k) for codes in kinds))
    loss = -np.log(np.maximum(probabilities[np.arange(n), truth], np.finfo(np.float64).eps))
    fewest = int(counts[2][counts[2] > 0].min())
    figures = [
        proportion("accuracy", int(counts[0].sum()), n),
        mean("log_loss", loss, draws),
        _area(truth, probabilities, draws),
        *(bootstrapped(name, _average(scores[name]), _average(drawn[name]), n, trials=fewest) for name in scores),
    ]
    for j, label in enumerate(map(str, classes)):
        hit, given, there = (int(count[j]) for count in counts)
        figures += [
            proportion("precision", hit, given, label),
            proportion("recall", hit, there, label),
            bootstrapped("f1", scores["f1"][j], drawn["f1"][:, j], n, label, trials=min(given, there)),
        ]
    return figures


def clustering(x: Matrix, labels: Labels, centres: Matrix, draws: Resamples) -> list[Figure]:
    """Squared distances to the own centre, averaged and summed (K4), and the size of each cluster.

    x: (n, d). labels: (n,) rows of `centres` (k, d).
    """
    n = labels.size
    squares = ((x - centres[labels]) ** 2).sum(axis=1)
    return [
        mean("quantisation_error", squares, draws),
        bootstrapped("inertia", squares.sum(), n * draws.sums(squares) / draws.size(), n),
        *(counted("size", int(size), n, str(j)) for j, size in enumerate(_tally(labels, centres.shape[0]))),
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


def mean(name: str, values: Vector, draws: Resamples) -> Figure:
    """The average of a value per row."""
    return bootstrapped(name, values.mean(), draws.sums(values) / draws.size(), values.size)


def confusion(truth: Labels, probabilities: Matrix, classes: Sequence[Class]) -> ConfusionMatrix:
    """Counts of (true class, assigned class) (B3.18)."""
    k = probabilities.shape[1]
    cells = np.bincount(truth * k + probabilities.argmax(axis=1), minlength=k * k)
    return ConfusionMatrix(classes=list(classes), counts=cells.reshape(k, k).tolist())


def roc_curves(truth: Labels, probabilities: Matrix, classes: Sequence[Class]) -> list[ReportCurve]:
    """The ROC curve of the second of two classes, or of each of a few classes against the rest."""
    k = probabilities.shape[1]
    names = {1: "roc"} if k == 2 else {j: f"roc {label}" for j, label in enumerate(classes)}
    if not 2 <= k <= FEW_CLASSES:
        return []
    drawn = [(name, *curve(probabilities[:, j], truth == j)) for j, name in names.items()]
    return [ReportCurve(name=name, x=x.tolist(), y=y.tolist()) for name, x, y in drawn if x.size]


def _tally(codes: Labels, k: int) -> Labels:
    return np.bincount(codes[codes >= 0], minlength=k)


def _scores(hits: Matrix | Labels, given: Matrix | Labels, there: Matrix | Labels) -> dict[str, Matrix]:
    """Of right, assigned and true counts (…, k)."""
    return {
        "precision": ratio(hits, given),
        "recall": ratio(hits, there),
        "f1": ratio(2 * hits, given + there),
    }


def _average(scores: Matrix) -> Matrix:
    """Over the last axis, leaving out NaN."""
    return ratio(np.nansum(scores, axis=-1), np.isfinite(scores).sum(axis=-1))


def _area(truth: Labels, probabilities: Matrix, draws: Resamples) -> Figure:
    """Area under the ROC curve, averaged one-versus-rest when there are more than two classes.

    The value is exact. Its replicates are the first-order terms of the resampled area (the mean placement of positives
    plus that of negatives minus the area), which are sums over rows like everything else.
    """
    n, k = probabilities.shape
    areas, drawn, fewest = [np.nan], [np.full(draws.counts.shape[0], np.nan)], n
    for j in range(k == 2, k if 2 <= k <= MANY_CLASSES else 0):
        positive = truth == j
        if 0 < positive.sum() < n:
            place = placements(probabilities[:, j], positive)
            sides = [ratio(draws.sums(place * side), draws.sums(side * 1.0)) for side in (positive, ~positive)]
            areas.append(float(place[positive].mean()))
            drawn.append(sides[0] + sides[1] - areas[-1])
            fewest = min(fewest, int(positive.sum()), int((~positive).sum()))
    return bootstrapped("roc_auc", _average(np.array(areas)), _average(np.stack(drawn, axis=-1)), n, trials=fewest)
