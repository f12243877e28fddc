"""Validation of a kind of fit by many fits of the training rows: folds, leave-one-out, bootstrap (LION 3.2, 5.2.3).

Everything is learned anew in every fit, preparation too.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from app.ml.catalogue.nested import meaning
from app.ml.contract.algorithm import Labels, Vector
from app.ml.evaluation.duplicates import Copies, Equal
from app.ml.evaluation.evaluation import evaluate
from app.ml.evaluation.group_splits import members
from app.ml.evaluation.metrics_across_folds import across_folds, across_resamples
from app.ml.evaluation.predictions import Predictions
from app.ml.evaluation.report import Fold
from app.ml.evaluation.splits import Split, resample
from app.ml.evaluation.validation import Validation
from app.ml.models.conformal import UNCALIBRATED, Calibration
from app.ml.preparation.preparation import Preparation
from app.ml.statistics.metric_value import Metric
from app.ml.training.fitting.fit import Fitted, calibrate_by_folds, evaluate_rows, fit_rows
from app.ml.training.fitting.fold_calibration import ScoredFold, calibrated, scored, small
from app.ml.training.fitting.leave_one_out import closed_form
from app.ml.training.rows.training_set import TrainingSet

T = TypeVar("T")
_METRICS = TypeAdapter(list[Metric])
Step = Callable[[float, str], None]
"""Receives how far it is, 0 to 1, and what is being done."""


class Validated(NamedTuple):
    metrics: list[Metric]
    evidence: str
    """One sentence."""
    folds: list[Fold] | None = None
    resampled: bool = False
    """Rows left out of bootstrap resamples were evaluated."""
    equal: Equal | None = None
    predicted: Vector | None = None
    """(n,) of a regression: a prediction for each row by a fit without it, in the target's own units."""
    calibration: Calibration | None = None
    """With the fits of the folds, where they are kept."""


class _FoldResult(NamedTuple):
    """Result of one fit, on rows that it has not seen."""

    metrics: str
    """In JSON."""
    residuals: NDArray[np.float64]
    """Residuals of these rows, as in `Evaluation`."""
    kept: ScoredFold | None = None


class _Predicted(NamedTuple):
    """Predictions of one fit for rows it has not seen."""

    value: NDArray[np.float64]
    """(m,) or (m, k)"""


class Fits(NamedTuple):
    """Inputs that all fits share. They may be made at once."""

    training_set: TrainingSet
    rows: Labels
    """Those that may be learned from."""
    seed: int
    rng: np.random.Generator
    step: Step
    copies: Copies | None = None
    """Duplicates among all rows of the training set."""
    kept_as: str | None = None
    """The name of the algorithm, if the fits of folds shall be kept where they may."""

    def of(self, rows: Labels) -> Fitted:
        """The fit of these places among `rows`."""
        return fit_rows(self.training_set, self.rows[rows], self.seed)

    def each(self, kind: type[T], tasks: Sequence[Callable[[], T]], what: str) -> Iterator[T]:
        self.step(0.0, f"fitting {what} 1 of {len(tasks)}")
        for done, made in enumerate(self.training_set.each(kind, tasks), 1):
            self.step(done / len(tasks), f"fitted {what} {done} of {len(tasks)}")
            yield made

    def evaluated(
        self, splits: Sequence[Split], what: str, *, bars: bool, whole: Preparation | None = None
    ) -> Iterator[tuple[Fold, Vector, ScoredFold | None]]:
        """The metrics of each split, the residuals of its test rows, and its fit where `whole` is given."""
        generators = self.rng.spawn(len(splits)) if bars else [None] * len(splits)
        tasks = [partial(self._fold_result, split, rng, whole) for split, rng in zip(splits, generators, strict=True)]
        for place, result in enumerate(self.each(_FoldResult, tasks, what)):
            metrics = _METRICS.validate_json(result.metrics)
            yield Fold(fold=place + 1, rows=splits[place].test.size, metrics=metrics), result.residuals, result.kept

    def _fold_result(self, split: Split, rng: np.random.Generator | None, whole: Preparation | None) -> _FoldResult:
        fitted, rows = self.of(split.train), self.rows[split.test]
        result = evaluate_rows(self.training_set, fitted, rows, rng)
        scored_fold = scored(self.training_set, self.kept_as, whole, fitted, rows) if whole and self.kept_as else None
        return _FoldResult(_METRICS.dump_json(result.metrics).decode(), result.residuals, scored_fold)

    def predicted(self, rows: Labels) -> _Predicted:
        """Predictions for these rows by a fit of all others."""
        fitted = self.of(np.delete(np.arange(self.rows.size), rows))
        data = self.training_set.data(fitted.preparation, self.rows[rows])
        return _Predicted(fitted.learned.predict(data.x))

    def equal(self, splits: Sequence[Split] | None = None) -> Equal | None:
        """Rows on which a fit of equal ones is evaluated; without splits each is held out of a fit of all others."""
        if self.copies is None:
            return None
        copies = self.copies.among(self.rows)
        return copies.alone() if splits is None else copies.across(splits)

    @property
    def groups(self) -> Labels | None:
        return self.training_set.groups_among(self.rows)


def validate(fits: Fits, how: Validation) -> Validated | None:
    """Validation on at least two training rows; None where only the test rows evaluate."""
    if fits.rows.size < 2:
        return None
    match how.method:
        case "holdout":
            return None
        case "kfold":
            return _kfold(fits, how.folds)
        case "loo":
            return _loo(fits) if fits.groups is None else _without_groups(fits, fits.groups)
        case "bootstrap":
            return _bootstrap(fits, how.resamples)


def errors_of_folds(fits: Fits, validated: Validated | None, folds: int = 0) -> Calibration:
    """Errors of the folds of a validation, which bound the targets of a regression. folds: fitted for them, if any."""
    if folds:
        validated = _kfold(fits, folds, bars=False)
    if validated is None:
        return UNCALIBRATED
    return validated.calibration or calibrate_by_folds(fits.training_set, fits.rows, validated.predicted)


def _kfold(fits: Fits, k: int, *, bars: bool = True) -> Validated | None:
    splits = fits.training_set.folds(fits.rows, k, fits.rng)
    if not splits:
        return None
    keeps = fits.kept_as is not None and small(fits.training_set, fits.rows, splits)
    whole = fits.training_set.prepare(fits.rows) if keeps else None
    folds, left, scored_folds = zip(*fits.evaluated(splits, "fold", bars=bars, whole=whole), strict=True)
    result = f"Cross-validation divides these into {len(folds)} folds{_kind_of_folds(fits)}."
    metrics = across_folds([fold.metrics for fold in folds])
    predicted = _out_of_fold(fits, splits, left)
    calibration = calibrated(fits.training_set, scored_folds) if keeps else None
    equal = fits.equal(splits)
    return Validated(metrics, result, list(folds), equal=equal, predicted=predicted, calibration=calibration)


def _kind_of_folds(fits: Fits) -> str:
    if fits.training_set.times is not None:
        return " in order of time, each tested by a fit of all rows before it"
    return "" if fits.groups is None else " of whole groups"


def _out_of_fold(fits: Fits, splits: Sequence[Split], residuals: Sequence[Vector]) -> Vector | None:
    """(n,) of a regression: what the fits of the other folds predict. None in order of time, where the earliest rows
    are predicted by no fit.
    """
    if not fits.training_set.task.of_numbers or fits.training_set.times is not None:
        return None
    left = np.empty(fits.rows.size)
    left[np.concatenate([split.test for split in splits])] = np.concatenate(residuals)
    weights = fits.training_set.weights
    return fits.training_set.target.y[fits.rows] - left / (1.0 if weights is None else np.sqrt(weights[fits.rows]))


def _bootstrap(fits: Fits, draws: int) -> Validated:
    drawn = [resample(fits.rows.size, fits.rng, fits.groups) for _ in range(draws)]
    drawn = [split for split in drawn if split.test.size]
    folds = [fold for fold, *_ in fits.evaluated(drawn, "resample", bars=False)]
    what = "rows" if fits.groups is None else "groups"
    result = (
        f"{len(folds)} more models were fitted on as many {what} drawn from these with replacement, each "
        f"evaluated on the "
        f"{what} that it has not seen."
    )
    return Validated(
        across_resamples([fold.metrics for fold in folds]), result, resampled=True, equal=fits.equal(drawn)
    )


def _loo(fits: Fits) -> Validated:
    training_set, rows = fits.training_set, fits.rows
    predictions = closed_form(training_set, rows)
    if predictions is None:
        predictions = np.full((rows.size, len(training_set.classes)) if training_set.classes else rows.size, np.nan)
    missing = np.flatnonzero(np.isnan(predictions.reshape(rows.size, -1)).any(axis=1))
    tasks = [partial(fits.predicted, np.array([row])) for row in missing.tolist()]
    for row, made in zip(missing, fits.each(_Predicted, tasks, "without a row,"), strict=True):
        predictions[row] = made.value[0]
    ways = {rows.size: "by a fit for each", 0: "in closed form"}
    result = (
        f"Leave-one-out predicts each of these by a fit of all the others, "
        f"{ways.get(missing.size, f'in closed form but for {missing.size} rows')}."
    )
    return _compared(fits, predictions, result, fits.equal())


def _without_groups(fits: Fits, groups: Labels) -> Validated | None:
    """Leave-one-group-out."""
    left_out = members(groups)
    if len(left_out) < 2:
        return None
    tasks = [partial(fits.predicted, rows) for rows in left_out]
    predictions = np.concatenate([made.value for made in fits.each(_Predicted, tasks, "without a group,")])
    result = f"Leave-one-group-out predicts each of {len(left_out)} groups of these by a fit of all the others."
    equal = fits.equal([Split(np.flatnonzero(groups != group), rows) for group, rows in enumerate(left_out)])
    return _compared(fits, predictions[np.argsort(np.concatenate(left_out))], result, equal)


def _compared(fits: Fits, predictions: NDArray[np.float64], result: str, equal: Equal | None) -> Validated:
    """predictions: (n,) or (n, k) to all rows."""
    training_set, rows = fits.training_set, fits.rows
    data = training_set.data(training_set.prepare(rows), rows)
    means = meaning(training_set.algorithm, training_set.params, training_set.task)
    made = Predictions(predictions, means)
    metrics = evaluate(data, made, training_set.classes, fits.rng, groups=fits.groups).metrics
    return Validated(metrics, result, equal=equal, predicted=predictions if training_set.task.of_numbers else None)
