"""The same fit again and again, on rows drawn with replacement: the numbers of every refit (LION 5.3)."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.evaluation.evaluation import Evaluation
from app.ml.evaluation.group_splits import members
from app.ml.evaluation.splits import resample
from app.ml.training.fitting.fit import Fitted, evaluate_rows, fit_rows
from app.ml.training.fitting.score_labels import score_labels
from app.ml.training.rows.training_set import TrainingSet


class Number(NamedTuple):
    """Meaning of a number that refits compare."""

    group: str
    """coefficient, prediction or measure."""
    name: str
    label: str | None = None
    row: int | None = None
    average: str | None = None
    """Average over classes by which a metric is made of theirs: "macro"."""


Numbers: TypeAlias = dict[Number, float]


class _Refit(NamedTuple):
    numbers: tuple[Number, ...]
    values: Vector

    @classmethod
    def of(cls, result: Numbers) -> "_Refit":
        return cls(tuple(result), np.array([*result.values()], np.float64))

    @property
    def by_number(self) -> Numbers:
        return dict(zip(self.numbers, self.values.tolist(), strict=True))


class Refits(NamedTuple):
    numbers: list[Number]
    """Those of the fit of all rows, then the measures."""
    whole: Matrix
    """(m,) of the fit of all rows; NaN for measures."""
    draws: Matrix
    """(R, m), NaN where a refit lacks the number."""
    left_out: Matrix | None
    """(n, m) without each row in turn; where rows are drawn by groups, (G, m) without each group."""


def refit(
    training_set: TrainingSet,
    options: pa.Table | None,
    *,
    resamples: int,
    jackknife: bool,
    noise: bool,
    seed: int,
    step: Callable[[int, int, Numbers], None],
) -> Refits:
    """options: rows to predict, or none. step: called with the numbers of fits done and of all, and the last numbers.

    noise: instead of drawing rows, give all of them new targets: the predictions of the fit, with normal noise as
    large as its residuals. No row is then unseen, and nothing is measured.
    """
    every = np.arange(training_set.rows)
    rng = np.random.Generator(np.random.PCG64(seed))
    units = (every[:, None] if training_set.groups is None else members(training_set.groups)) if jackknife else ()
    fits = 1 + resamples + len(units)
    fitted_to_all = fit_rows(training_set, every, seed)
    whole = _numbers_of(training_set, fitted_to_all, options)

    def simulated(rng_of_refit: np.random.Generator) -> _Refit:
        other = _simulated(training_set, fitted_to_all, rng_of_refit)
        return _Refit.of(_numbers_of(other, fit_rows(other, every, seed), options))

    def drawn(rng_of_refit: np.random.Generator) -> _Refit:
        split = resample(every.size, rng_of_refit, training_set.groups)
        fitted = fit_rows(training_set, split.train, seed)
        return _Refit.of(
            _numbers_of(training_set, fitted, options)
            | _measured(evaluate_rows(training_set, fitted, split.test, None))
        )

    def without(rows: Labels) -> _Refit:
        return _Refit.of(_numbers_of(training_set, fit_rows(training_set, np.delete(every, rows), seed), options))

    tasks = [partial(simulated if noise else drawn, generator) for generator in rng.spawn(resamples)]
    tasks += [partial(without, rows) for rows in units]
    refits = []
    for made in training_set.each(_Refit, tasks):
        refits.append(made.by_number)
        step(1 + len(refits), fits, refits[-1] if len(refits) <= resamples else {})
    draws, left_out = refits[:resamples], refits[resamples:]
    measures = {number: np.nan for result in draws for number in result if number.group == "measure"}
    numbers = [*whole, *measures]
    return Refits(
        numbers,
        _matrix([whole], numbers)[0],
        _matrix(draws, numbers),
        _matrix(left_out, numbers) if jackknife else None,
    )


def _simulated(training_set: TrainingSet, fitted: Fitted, rng: np.random.Generator) -> TrainingSet:
    """Other targets that the fit could have come from; noise of a row of weight w is σ/√w."""
    learned, data = fitted.learned, fitted.data
    predictions = learned.algorithm.predict(learned.params, learned.state, data.x)
    square = float(data.weights @ (data.y - predictions) ** 2)
    sigma = np.sqrt(square / max(1, predictions.size - len(_coefficients(training_set, fitted))))
    y = predictions + sigma * rng.standard_normal(predictions.size) / np.sqrt(data.weights)
    return training_set._replace(target=training_set.target._replace(y=y))


def _matrix(many: list[Numbers], numbers: list[Number]) -> Matrix:
    values = [[result.get(number, np.nan) for number in numbers] for result in many]
    return np.array(values, np.float64).reshape(len(many), len(numbers))


def _numbers_of(training_set: TrainingSet, fitted: Fitted, options: pa.Table | None) -> Numbers:
    return _coefficients(training_set, fitted) | (
        _predictions(training_set, fitted, options) if options is not None else {}
    )


def _coefficients(training_set: TrainingSet, fitted: Fitted) -> Numbers:
    """In the table's own units, whose meaning does not change from refit to refit."""
    if training_set.algorithm.linear is None or fitted.preparation.sparse:  # terms differ from refit to refit
        return {}
    coef, intercept = training_set.algorithm.linear(fitted.fit.state)
    codes = fitted.data.codes if training_set.classes else np.zeros(0, np.intp)
    class_labels = score_labels(training_set.classes, codes, intercept.size)
    if class_labels is None:
        return {}
    labels = [None if label is None else str(label) for label in class_labels]
    units = fitted.preparation.scaling.affine()
    constants, rows = intercept + units.constant(coef), units.coef(coef)
    result = {Number("coefficient", "(intercept)", label): float(b) for label, b in zip(labels, constants, strict=True)}
    for name, row in zip(fitted.preparation.layout.plain_names, rows, strict=True):
        result |= {Number("coefficient", name, label): float(value) for label, value in zip(labels, row, strict=True)}
    return result


def _predictions(training_set: TrainingSet, fitted: Fitted, options: pa.Table) -> Numbers:
    learned, x = fitted.learned, fitted.preparation.matrix(fitted.preparation.raw(options))
    predictions = learned.algorithm.predict(learned.params, learned.state, x)
    if training_set.task.of_classes:
        return {
            Number("prediction", "probability", str(label), row): float(value)
            for row, prediction in enumerate(predictions)
            for label, value in zip(training_set.classes, prediction, strict=True)
        }
    return {Number("prediction", "prediction", None, row): float(value) for row, value in enumerate(predictions)}


def _measured(evaluated: Evaluation) -> Numbers:
    return {
        Number("measure", metric.name, metric.label, average=metric.average): np.nan
        if metric.value is None
        else metric.value
        for metric in evaluated.metrics
    }
