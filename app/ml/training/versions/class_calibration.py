"""Calibration of a stored classifier: maps that some rows fit, and probabilities that other rows measure."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from app.ml.evaluation.evaluation import NO_OPTIONS, Evaluation, of_classes
from app.ml.evaluation.reliability import Bins, Reliability, reliability
from app.ml.models.model import Model
from app.ml.numerics.class_probabilities.calibrator import Calibrator, Method, calibrated
from app.ml.statistics.intervals import Resamples
from app.ml.statistics.resampling import Rows
from app.ml.training.versions.calibration_rows import PredictedRows

MANY = 1000
"""Rows from which on isotonic maps are seldom worse than sigmoids (Niculescu-Mizil & Caruana 2005)."""

WORSE_METRICS = 2
"""Metrics of probabilities, of three, that are worse after a calibration that has done harm."""
NAMES = {"expected_calibration_error": "calibration error", "log_loss": "log loss", "brier": "Brier score"}


class MeasuredProbabilities(NamedTuple):
    """The probabilities before and after calibration, on rows that neither fit has seen."""

    before: Reliability
    after: Reliability
    evaluation: Evaluation
    """Metrics of the calibrated model."""


def calibrate(model: Model, rows: PredictedRows, method: Method) -> Model:
    """The model with one more calibrator, fitted to these rows."""
    calibrator = Calibrator.of(method, rows.probabilities, rows.codes, rows.weights)
    return replace(model, calibrators=(*model.calibrators, calibrator))


def measure(after: Model, rows: PredictedRows, bins: Bins, seed: int) -> MeasuredProbabilities:
    """after: the calibrated model. rows: with the probabilities before its last calibrator."""
    classes, truth = after.classes or (), rows.codes
    draws = Resamples.of(truth.size, np.random.Generator(np.random.PCG64(seed)), rows.groups)
    counted, new = Rows(draws, rows.weights), calibrated(after.calibrators[-1], rows.probabilities)
    before, now = (reliability(truth, p, classes, counted, bins) for p in (rows.probabilities, new))
    accepted_rows, options = after.algorithm.known, NO_OPTIONS._replace(numbers=rows.numbers)
    accepted = None if accepted_rows is None else accepted_rows(after.params, new)
    after_metrics = of_classes(
        truth, new.argmax(axis=1), new, counted, classes=classes, options=options, accepted=accepted
    )
    return MeasuredProbabilities(before, now, after_metrics)


def losses(measured: MeasuredProbabilities) -> Iterator[str]:
    """Warning where two of the three metrics of probabilities are worse than without the last calibrator."""
    pairs = zip(measured.before.metrics, measured.after.metrics, strict=True)
    worse = [(old, new) for old, new in pairs if old.value is not None and (new.value or 0.0) > old.value]
    if len(worse) >= WORSE_METRICS:
        changes = ", ".join(f"{NAMES[old.name]} {old.value:.3g} before, {new.value:.3g} after" for old, new in worse)
        yield (
            f"The calibrated probabilities are worse on the {worse[0][0].n} rows that measured them ({changes}): "
            "the version before is the better one, unless more rows show otherwise."
        )


def doubts(model: Model, method: Method, rows: PredictedRows) -> Iterator[str]:
    """Warnings about the maps of a calibrated model, which these rows fitted."""
    if method == "isotonic" and rows.codes.size < MANY:
        yield (
            f"{rows.codes.size} rows fitted the isotonic maps: with fewer than {MANY} they follow chance, and sigmoid "
            "maps are mostly better."
        )
    coef = model.calibrators[-1].coef
    if len(coef) and (coef[:, 0] <= 0).any():
        yield "A map does not rise: rows with a higher probability of a class were not more often of it."
