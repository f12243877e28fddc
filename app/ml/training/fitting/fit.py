"""One fit of some rows of a table, from preparation to evaluation."""

import json
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from app.ml.contract.algorithm import Data, Fit, FittedLearner, Labels, Matrix, Progress, Vector, silent
from app.ml.evaluation.constant_predictions import Constant, ConstantClass, ConstantNumber
from app.ml.evaluation.evaluation import Evaluation, evaluate
from app.ml.evaluation.predictions import Predictions, of_training_rows, predictions
from app.ml.evaluation.reliability import Bins
from app.ml.evaluation.splits import evenly
from app.ml.models.conformal import ADAPTIVE, ENOUGH, UNCALIBRATED, Calibration
from app.ml.models.own_widths import has_own, own_widths, scales_own
from app.ml.preparation.preparation import Preparation
from app.ml.preparation.target import Classes
from app.ml.preparation.target_transform import carried
from app.ml.statistics.error_by_prediction import NONE, error_of_predictions, error_spread
from app.ml.training.rows.training_set import TrainingSet

MOST_ERRORS = 10_000
"""A quantile of more is hardly surer."""
OWN_ERRORS = 39
"""Errors from which on those of an algorithm with intervals of its own scale them: 95 % is not the largest of them."""
RICH = 300
"""Errors on rows held out from which on some of them fit their spread; of fewer the training rows do."""


class Fitted(NamedTuple):
    preparation: Preparation
    """Learned from the same rows."""
    data: Data
    fit: Fit[Any]
    learned: FittedLearner
    reference: Labels | None = None
    """(n,) codes of the classes of these rows that clusters are compared with, -1 where there is none."""
    groups: Labels | None = None
    """(n,) codes of the groups that splits keep together."""


def fit_rows(training_set: TrainingSet, rows: Labels, seed: int, progress: Progress = silent) -> Fitted:
    """Everything learned from these rows, which may repeat, the unlabelled ones, and no other."""
    preparation = training_set.prepare(rows)
    data = training_set.training_data(preparation, rows)
    start = training_set.start and training_set.start.state(preparation, training_set.classes)
    fit, learned = training_set.fit(data, seed, progress, start=start)
    classes = training_set.reference_of(rows)
    if classes is None:
        return Fitted(preparation, data, fit, learned, groups=training_set.groups_among(rows))
    return Fitted(preparation, data, *_named(fit, learned, data, classes), classes.codes)


def _named(fit: Fit[Any], learned: FittedLearner, data: Data, classes: Classes) -> tuple[Fit[Any], FittedLearner]:
    """The fit with names for its clusters, where the algorithm keeps them; nothing else of it changes."""
    named = learned.algorithm.named
    if named is None:
        return fit, learned
    names = [name if isinstance(name, str) else json.dumps(name) for name in classes.names]
    state = named(learned.params, fit.state, data, classes.codes, names)
    return replace(fit, state=state), learned._replace(state=state)


def centre_of(fitted: Fitted) -> Vector | None:
    """(d,) weighted mean of the training rows, where scores are linear in the columns; None: they are not."""
    if fitted.learned.algorithm.linear is None:
        return None
    weights = fitted.data.weights
    return np.ascontiguousarray(weights @ fitted.data.x / weights.sum(), np.float64)


def evaluate_rows(
    training_set: TrainingSet,
    fitted: Fitted,
    rows: Labels,
    rng: np.random.Generator | None,
    *,
    examples: int = 0,
    bins: Bins | None = None,
    constant: Constant | None = None,
) -> Evaluation:
    """Evaluation on these rows; without error bars if there is no `rng`. examples, bins, constant: see `evaluate`."""
    if not rows.size:
        return Evaluation([])
    data = training_set.data(fitted.preparation, rows)
    predicted = predictions(fitted.learned, data, fitted.data)
    if (classes := training_set.reference_of(rows)) is not None:
        predicted = predicted._replace(reference=classes.codes)
    groups = training_set.groups_among(rows)
    return evaluate(
        data, predicted, training_set.classes, rng, groups=groups, examples=examples, bins=bins, constant=constant
    )


def constant_of(training_set: TrainingSet, rows: Labels) -> Constant | None:
    """The best constant predictions for these training rows; None for tasks without a target."""
    target = training_set.target.y
    if not rows.size or not target.size:
        return None
    if training_set.task.of_classes:
        return ConstantClass.of(target[rows].astype(np.intp), len(training_set.classes))
    return ConstantNumber.of(target[rows]) if training_set.task.of_numbers else None


def predict_training_rows(fitted: Fitted) -> Predictions:
    """Predictions for the rows of the fit, and the classes that its clusters are compared with."""
    return of_training_rows(fitted.learned, fitted.data)._replace(reference=fitted.reference)


def evaluate_training_rows(fitted: Fitted, predicted: Predictions, rng: np.random.Generator | None) -> Evaluation:
    """Evaluation on the training rows: optimistic."""
    return evaluate(fitted.data, predicted, fitted.data.labels, rng, groups=fitted.groups)


def calibrate(training_set: TrainingSet, fitted: Fitted, rows: Labels) -> Calibration:
    """By the errors on these rows, of the function of the target that was fitted.

    An algorithm that bounds targets itself keeps its intervals where the rows are few.
    """
    algorithm, params = training_set.algorithm, training_set.params
    if not training_set.task.of_numbers or not rows.size:
        return UNCALIBRATED
    scaled = scales_own(algorithm, params)
    least = ENOUGH if algorithm.plug_in(params) else OWN_ERRORS
    if has_own(algorithm, params) and not (scaled and rows.size >= least):
        return UNCALIBRATED
    data = training_set.data(fitted.preparation, rows[evenly(rows.size, MOST_ERRORS)])
    with np.errstate(all="ignore"):
        predicted = algorithm.predict(params, fitted.fit.state, data.x)
        widths = own_widths(algorithm, params, fitted.fit.state, data.x) if scaled else None
        if widths is not None and not np.isfinite(widths).all():
            return UNCALIBRATED
        spread = spread_of_training_rows(training_set, fitted) if rows.size < RICH else NONE
        truth = carried(training_set.preprocessing.target, data.y)
        return Calibration.of(predicted, truth, widths=widths, spread=spread)


def spread_of_training_rows(training_set: TrainingSet, fitted: Fitted) -> Matrix:
    """The spread of errors by the rows of the fit, of mean 1: they may be too small, their proportions are not."""
    algorithm, params, data = training_set.algorithm, training_set.params, fitted.data
    if len(data.y) < ADAPTIVE:
        return NONE
    predicted = algorithm.predict(params, fitted.fit.state, data.x)
    errors = np.abs(carried(training_set.preprocessing.target, data.y) - predicted)
    if scales_own(algorithm, params):
        errors = errors / own_widths(algorithm, params, fitted.fit.state, data.x)
    spread = error_spread(predicted, errors)
    return spread / [[1.0], [error_of_predictions(spread, predicted).mean()]] if spread.size else NONE


def calibrate_by_folds(training_set: TrainingSet, rows: Labels, predicted: Vector | None) -> Calibration:
    """By what fits without each of these rows predict for it, in the target's own units."""
    if predicted is None or has_own(training_set.algorithm, training_set.params):
        return UNCALIBRATED
    how = training_set.preprocessing.target
    with np.errstate(all="ignore"):
        return Calibration.of(carried(how, predicted), carried(how, training_set.target.y[rows]), crossed=True)
