"""Coverage of prediction intervals, overall and by fifths of the predictions."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.evaluation.report import CoverageByPrediction, IntervalReport
from app.ml.evaluation.splits import evenly
from app.ml.models.conformal import ENOUGH
from app.ml.models.cv_plus import guaranteed
from app.ml.models.model import Model
from app.ml.statistics.intervals import CONFIDENCE
from app.ml.statistics.metric_value import Metric, proportion
from app.ml.training.fitting.fit import MOST_ERRORS, Fitted
from app.ml.training.rows.training_set import TrainingSet

GROUPS = 5
FEWEST = 10
"""Rows of a fifth."""
SHORT = 0.05
"""A fifth is warned of where its coverage is surely this far below the confidence."""
GUARANTEES = {
    "algorithm": "The algorithm computes the intervals: they cover the stated share of targets if its model "
    "of the noise is right.",
    "split-conformal": "Errors on rows held out set the widths: on average over rows, the intervals cover at least the "
    "confidence of new targets, whatever their distribution, if new rows are like those held out.",
    "cv-plus": "Too few rows were held out for a 95 % interval: the fits of the K folds of cross-validation set the "
    "ends, each about its own prediction by the errors of its fold (CV+). On average over rows, the intervals of "
    "confidence 1 − α cover at least 1 − 2α − min{2(1 − α)(K − 1)/(n + K), (1 − K/n)/(K + 1)} of new targets, the "
    "second term only if all folds have the same size, whatever their distribution, if new rows are like the n "
    "training rows; usually about 1 − α.",
    "cross-validation": "Too few rows were held out for a 95 % interval: errors of the folds of cross-validation set "
    "the widths. The coverage is near the confidence if the fits of the folds are close to that of all rows; it is "
    "not guaranteed.",
}
SCALED = " They are in proportion to the intervals that the algorithm computes."
ADAPTIVE = " The width follows the prediction: it is in proportion to the errors of rows with a prediction like it."

UNBOUNDED = (
    f" Fewer than {ENOUGH} errors do not bound a 95 % interval: hold out more rows, or validate by kfold or loo, whose "
    "errors then set the widths."
)


def interval_report(model: Model, predicted: Vector, ends: Matrix, truth: Vector) -> IntervalReport | None:
    """Report on predictions (n,), their 95 % intervals (n, 2) and targets (n,). None beyond finite predictions."""
    if not np.isfinite(predicted).all():
        return None
    inside = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
    order = np.argsort(predicted, kind="stable")
    bounded = _is_bounded(model, ends)
    groups = np.array_split(order, GROUPS) if bounded and truth.size >= GROUPS * FEWEST else []
    least, greatest = (limit if math.isfinite(limit) else None for limit in model.limits)
    return IntervalReport(
        interval=model.interval_name,
        guarantee=GUARANTEES[model.interval_name] + _condition(model),
        confidence=CONFIDENCE,
        target_minimum=least,
        target_maximum=greatest,
        coverage=_coverage(inside if bounded else inside[:0]),
        fifths=[_fifth(predicted[rows], inside[rows], ends[rows]) for rows in groups],
    )


def _is_bounded(model: Model, ends: Matrix) -> bool:
    """False where nothing is known of the width: such intervals hold any target."""
    if model.interval_name != "algorithm" and not model.calibration.bounds:
        return False
    return not np.isinf(ends).any(axis=1).all()


def _condition(model: Model) -> str:
    errors, scaled = model.calibration, SCALED if model.calibration.own else ""
    if errors.folds:
        sizes = np.bincount(errors.folds.fold)
        share = guaranteed(sizes, CONFIDENCE)
        return f"{scaled} With {sizes.sum()} rows in {sizes.size} folds 95 % intervals surely cover {share:.1%}."
    if model.interval_name != "split-conformal":
        return ""
    if errors.scores.size < ENOUGH:
        return UNBOUNDED
    return scaled + (ADAPTIVE if errors.spread.size else "")


def bounds_observations(model: Model) -> bool:
    """True if the model has intervals of new targets, not of their mean."""
    bounds_mean = model.algorithm.interval_of_mean(model.params)
    return model.task.of_numbers and model.algorithm.interval is not None and not bounds_mean


def held_out_report(model: Model, training_set: TrainingSet, fitted: Fitted, rows: Labels) -> IntervalReport | None:
    """Report on rows held out in training; None without rows, or without intervals of new targets."""
    if not rows.size or not bounds_observations(model):
        return None
    rows = rows[evenly(rows.size, MOST_ERRORS)]
    predicted = model.predict_raw(training_set.raw_matrix(fitted.preparation, rows), CONFIDENCE)
    return interval_report(model, predicted.values, np.asarray(predicted.intervals), training_set.target.y[rows])


def warnings(report: IntervalReport | None, *, logarithm: bool) -> Iterator[str]:
    """Intervals that nothing bounds, and fifths of the predictions whose intervals are too narrow.

    logarithm: the target has one that is not fitted.
    """
    if report is None:
        return
    if report.coverage.value is None:
        yield f"There are no prediction intervals: their ends are null.{UNBOUNDED}"
    remedy = "Fit the logarithm of the target (preprocessing.target), or hold" if logarithm else "Hold"
    for fifth in report.fifths:
        covered, upper = fifth.coverage.value, fifth.coverage.upper
        if covered is not None and upper is not None and upper < report.confidence - SHORT:
            yield (
                f"95 % intervals cover only {covered:.0%} of the held-out targets whose predictions are from "
                f"{fifth.lowest_prediction:.4g} to {fifth.highest_prediction:.4g}: errors are larger there. {remedy} "
                "out more rows."
            )


def _coverage(inside: NDArray[Any]) -> Metric:
    return proportion("coverage", int(inside.sum()), inside.size)


def _fifth(predicted: Vector, inside: NDArray[Any], ends: Matrix) -> CoverageByPrediction:
    with np.errstate(invalid="ignore"):
        width = float((ends[:, 1] - ends[:, 0]).mean())
    return CoverageByPrediction(
        rows=predicted.size,
        lowest_prediction=float(predicted[0]),
        highest_prediction=float(predicted[-1]),
        coverage=_coverage(inside),
        mean_width=width if math.isfinite(width) else None,
    )
