"""Metrics of assigned classes beside the true ones, with error bars: every one a function of counts.

A class's F1 is 2J/(1 + J) of the share J of hits among the rows of the class or assigned to it, so it has the exact
interval of a share. Means over classes have bounds by the score intervals of their classes and the correlations of
these; MCC by Student's t of its inverse hyperbolic tangent.
"""

import math
from collections.abc import Sequence

import numpy as np

from app.ml.contract.algorithm import Labels, Vector
from app.ml.contract.labels import Class
from app.ml.statistics.intervals import Bounds, Resamples, hyperbolic_student_t, ratio, score
from app.ml.statistics.metric_value import FEW_CASES, FEW_OF_A_CLASS, Metric, by_student_t, macro, metric, with_note
from app.ml.statistics.resampling import Rows, Tally


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
    hits, predicted, there = (rows.tally(codes, k) for codes in (np.where(right, truth, -1), assigned, truth))
    metrics = [
        rows.share("accuracy", rows.tally(right - 1, 1), rows.tally(np.zeros(n, np.intp), 1)),
        rows.mean_share("balanced_accuracy", hits, there),
        _correlation(hits, predicted, there, rows),
        *map(macro, (rows.mean_share("precision", hits, predicted), rows.mean_share("recall", hits, there))),
        macro(_mean_f1(hits, predicted, there, rows)),
    ]
    metrics[1:] = with_few_cases(metrics[1:], truth, k, rows)
    either = _either(hits, predicted, there)
    for j, label in enumerate(map(str, classes)):
        metrics += [
            rows.share("precision", hits, predicted, j, label),
            rows.share("recall", hits, there, j, label),
            _f1(rows.share("f1", hits, either, j, label)),
        ]
    return metrics


def with_few_cases(metrics: Sequence[Metric], truth: Labels, k: int, rows: Rows) -> list[Metric]:
    """Metrics of all classes with a note where some class has few rows."""
    worths = rows.worths(rows.tally(truth, k))
    if worths.min(initial=np.inf) >= FEW_CASES:
        return [*metrics]
    return [
        with_note(metric, FEW_OF_A_CLASS if metric.label is None and metric.lower is not None else None)
        for metric in metrics
    ]


def _either(hits: Tally, predicted: Tally, there: Tally) -> Tally:
    """Rows of each class or assigned to it, of which the hits are the share F1/(2 − F1)."""
    return Tally(
        predicted.rows + there.rows - hits.rows,
        predicted.total + there.total - hits.total,
        predicted.units + there.units - hits.units,
    )


def _f1(jaccard: Metric) -> Metric:
    """From the share of hits among the rows of a class or assigned to it, J, with its bounds: 2J/(1 + J)."""
    ends = (jaccard.value, jaccard.lower, jaccard.upper)
    value, lower, upper = (np.nan if end is None else 2 * end / (1 + end) for end in ends)
    bounds = None if math.isnan(lower) else Bounds(lower, upper)
    return metric("f1", value, bounds, jaccard.interval or "", n=jaccard.n, label=jaccard.label)


def _mean_f1(hits: Tally, predicted: Tally, there: Tally, rows: Rows) -> Metric:
    either = _either(hits, predicted, there)
    defined = either.total > 0
    shares, trials, pulls = rows.shares(hits, either, defined)
    ends = [2 * end / (1 + end) for end in score(shares, trials, max(1.0, trials.sum() - shares.size))]
    slopes = 2 * pulls / (1 + shares) ** 2
    return rows.mean_score("f1", 2 * shares / (1 + shares), ends[0], ends[1], slopes, n=int(there.rows.sum()))


def _correlation(hits: Tally, predicted: Tally, there: Tally, rows: Rows) -> Metric:
    """Matthews's correlation of assigned and true classes."""
    n, total, right, by_class, by_truth = (
        int(there.rows.sum()),
        there.total.sum(),
        hits.total.sum(),
        predicted.total,
        there.total,
    )
    cross = right * total - by_class @ by_truth
    spreads = [max(total**2 - counts @ counts, 0.0) for counts in (by_class, by_truth)]
    value = float(ratio(cross, math.sqrt(spreads[0] * spreads[1])))
    if math.isnan(value):
        return metric("mcc", value, None, "", n=n, label=None)
    each, sizes = hits.units.sum(axis=1), there.units.sum(axis=1)
    of_cross = each * total + right * sizes - predicted.units @ by_truth - there.units @ by_class
    of_spreads = [
        2 * (total * sizes - part.units @ counts) for part, counts in ((predicted, by_class), (there, by_truth))
    ]
    pulls = of_cross / math.sqrt(spreads[0] * spreads[1])
    pulls -= value / 2 * (of_spreads[0] / spreads[0] + of_spreads[1] / spreads[1])
    error = rows.error_of_pulls(pulls)
    fewest = int(min(rows.worths(there)[there.total > 0].min(), rows.worths(predicted)[predicted.total > 0].min()))
    return by_student_t(
        "mcc", value, error.value, n, trials=fewest, freedom=error.freedom, bounds_of=hyperbolic_student_t
    )
