"""Report of a training: metrics, curves and warnings as JSON."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from app.ml.contract.algorithm import JSON, Algorithm, ColumnUnits, Fit, Labels, Params
from app.ml.contract.labels import Class
from app.ml.contract.named_numbers import Names, named
from app.ml.evaluation import baselines, duplicates
from app.ml.evaluation.bootstrap_estimate import corrected
from app.ml.evaluation.duplicates import Equal
from app.ml.evaluation.evaluation import Evaluation
from app.ml.evaluation.holdout_reuse import held_out
from app.ml.evaluation.predictions import Predictions
from app.ml.evaluation.regression_plots import over_input
from app.ml.evaluation.report import Conditioning, Report, ReportCurve, Reuse, Springs, UnscaledSummary
from app.ml.evaluation.residuals import Part, residuals
from app.ml.evaluation.splits import Split, evenly
from app.ml.evaluation.train_test_gaps import gaps
from app.ml.preparation.preparation import Preparation
from app.ml.preparation.restoring import RestoredRow, imputed, restore
from app.ml.preparation.target_transform import turned_back
from app.ml.training.fitting.cross_validation import Validated
from app.ml.training.planning.plan import Plan
from app.ml.training.planning.reference_classes import compared_with
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.reporting import coefficient_stability as stability
from app.ml.training.reporting.term_weights import ranked_terms, vocabulary_warnings
from app.ml.training.rows.training_set import TrainingSet

MAX_CURVE = 1000
"""Points kept of a monitor curve."""
FEW = 30
"""Fewer test rows than this give metrics that are hardly worth their digits."""
FEW_GROUPS = 20
"""Fewer groups of test rows than this hardly show how much groups differ."""
MAX_PROTOTYPES = 200
NAMED = 10
"""Classes named in one warning."""


class EvaluatedFit(NamedTuple):
    """A fit and all that was measured of it."""

    fit: Fit[Any]
    test: Evaluation
    train: Evaluation
    validated: Validated | None
    equal: Equal
    """Test rows that equal training rows."""
    preparation: Preparation
    """The preparation that made the matrix of the algorithm."""
    conditioning: Conditioning | None
    springs: Springs | None
    rows: int
    """Fitted on."""
    predicted: Predictions
    """Predictions for the training rows."""


def report(
    training_set: TrainingSet,
    split: Split,
    evaluated: EvaluatedFit,
    planned: Plan,
    data_digest: str,
) -> Report:
    fit, validated, spec = evaluated.fit, evaluated.validated, planned.spec
    classes = training_set.classes
    shaky = stability.warnings(evaluated.conditioning)
    parts: tuple[tuple[Part, Labels, Evaluation], ...] = (
        ("train", split.train, evaluated.train),
        ("test", split.test, evaluated.test),
    )
    looked_at = [residuals(name, training_set.numbers[rows], part.residuals) for name, rows, part in parts]
    listed = evaluated.preparation.listed
    offsets, scales = listed.scaling.units
    return Report(
        task=training_set.task,
        evidence=_evidence(training_set, split, evaluated, spec)
        + compared_with(planned.reference, training_set.reference and training_set.reference.codes),
        rows_train=evaluated.rows,
        rows_test=split.test.size,
        rows_unlabelled=training_set.unlabelled.size,
        seed=spec.seed,
        test=evaluated.test.metrics,
        train=evaluated.train.metrics,
        baselines=evaluated.test.baselines,
        gaps=gaps(evaluated.train.metrics, evaluated.test.metrics),
        cross_validation=validated.metrics if validated else None,
        bootstrap_632=corrected(evaluated.train.metrics, validated.metrics)
        if validated and validated.resampled
        else None,
        folds=validated.folds if validated else None,
        prototypes=_prototypes(training_set, evaluated),
        confusion_matrix=evaluated.test.confusion_matrix,
        rejection=evaluated.test.rejection,
        reliability=evaluated.test.reliability,
        duplicates=duplicates.duplicates(evaluated.equal, validated and validated.equal),
        reuse=_reuse(planned, data_digest) if split.test.size else None,
        residuals=[part for part in looked_at if part is not None],
        curves=[*monitor_curves(fit.curves), *evaluated.test.curves, *_line(training_set, evaluated, split)],
        conditioning=evaluated.conditioning,
        springs=evaluated.springs,
        converged=bool(fit.converged),
        iterations=int(fit.iterations),
        columns=list(listed.layout.names),
        offsets=offsets.tolist(),
        scales=scales.tolist(),
        imputed=finite(imputed(listed)),
        summary=summary_of(training_set.algorithm, training_set.params, fit.state, evaluated.preparation, classes),
        terms=ranked_terms(training_set, split.train, fit.state, evaluated.preparation),
        unscaled=unscaled_summary(training_set, evaluated.fit, evaluated.preparation),
        warnings=[
            *planned.warnings,
            *_warnings(training_set, split, wanted=spec.validation.held_out > 0),
            *vocabulary_warnings(evaluated.preparation),
            *_group_warnings(spec.validation.group, training_set.groups_among(split.test)),
            *duplicates.warnings(
                evaluated.equal,
                validated and validated.equal,
                split.train.size,
                grouped=spec.validation.group is not None,
            ),
            *evaluated.test.doubts("test rows"),
            *baselines.warnings(evaluated.test.baselines),
            *_fit_warnings(fit),
            *shaky,
        ],
    )


def _prototypes(training_set: TrainingSet, evaluated: EvaluatedFit) -> list[RestoredRow] | None:
    prototypes = training_set.algorithm.prototypes
    rows = None if prototypes is None else prototypes(training_set.params, evaluated.fit.state)
    if rows is None or not evaluated.preparation.restorable:
        return None
    return restore(evaluated.preparation, rows[:MAX_PROTOTYPES])


def unscaled_summary(training_set: TrainingSet, fit: Fit[Any], preparation: Preparation) -> UnscaledSummary | None:
    if preparation.sparse:
        return None
    algorithm, scaling, layout = training_set.algorithm, preparation.scaling, preparation.layout
    if algorithm.unscaled is not None:
        names, result = layout.plain_names, algorithm.unscaled(training_set.params, fit.state, scaling.affine())
    elif algorithm.in_units is not None:
        names, units = layout.names, ColumnUnits(*scaling.units)
        result = algorithm.in_units(training_set.params, fit.state, units)
    else:
        return None
    if result is None:
        return None
    return UnscaledSummary(columns=list(names), summary=readable(result, preparation, training_set.classes, names))


def summary_of(
    algorithm: Algorithm[Any, Any], params: Params, state: Any, preparation: Preparation, classes: Sequence[Class]
) -> JSON:
    """Summary by the algorithm; None where it has none, and of texts, whose terms are too many."""
    if algorithm.summary is None or preparation.sparse:
        return None
    return readable(algorithm.summary(params, state), preparation, classes)


def _reuse(planned: Plan, data_digest: str) -> Reuse:
    return held_out(data_digest, planned.target, planned.spec.validation.model_dump(), planned.spec.seed)


def finite(value: Any) -> JSON:
    """The value as JSON: no numpy, and null for a number that is not finite."""
    match value:
        case np.ndarray() | np.generic():
            return finite(value.tolist())
        case Mapping():
            return {str(key): finite(part) for key, part in value.items()}
        case list() | tuple():
            return [finite(part) for part in value]
        case float() if not math.isfinite(value):
            return None
    return value


def readable(
    result: Any, preparation: Preparation, classes: Sequence[Class], columns: Sequence[str] | None = None
) -> JSON:
    """The value as `finite` returns it, with names for the numbers of columns, categories and classes.

    columns: None: those of the matrix.
    """

    def label(code: int) -> Class | None:
        return classes[code] if classes and code >= 0 else None

    def names() -> Sequence[str]:
        return preparation.layout.names if columns is None else columns

    def categories(column: int) -> Sequence[str]:
        return next(input_.levels or [] for input_ in preparation.inputs if input_.name == names()[column])

    return named(finite(result), Names(lambda column: names()[column], label, categories))


def _evidence(training_set: TrainingSet, split: Split, evaluated: EvaluatedFit, spec: TrainSpec) -> str:
    across = f" {evaluated.validated.evidence}" if evaluated.validated else ""
    if n_unlabelled := training_set.unlabelled.size:
        across = f" {n_unlabelled} rows without a target are learned from in every fit, and tested in none.{across}"
    if not split.test.size:
        sample = "" if split.train.size == evaluated.rows else f"a random sample of {split.train.size} of "
        return f"No rows were held out: the metrics are of {sample}the {evaluated.rows} training rows.{across}"
    stratified = training_set.task.of_classes and evaluated.rows == split.train.size
    how, seed = "at random, class by class" if stratified else "at random", spec.seed
    if spec.validation.group is not None:
        how = f"at random, in whole groups by column {spec.validation.group!r},"
    if training_set.times is not None:
        return (
            f"The metrics rest on the {split.test.size} latest rows by column {spec.validation.time!r}, from "
            f"{training_set.times.first(split.test)} on; the model was fitted on the {evaluated.rows} before.{across}"
        )
    return (
        f"The metrics rest on {split.test.size} rows held out {how} with seed {seed}; "
        f"the model was fitted on the other {evaluated.rows}.{across}"
    )


def monitor_curves(curves: Mapping[str, Sequence[float]]) -> Iterator[ReportCurve]:
    """Thinned evenly; iterations, counted from 1, without a finite value are left out."""
    for name, values in curves.items():
        y = np.asarray(values, np.float64)
        indices = np.flatnonzero(np.isfinite(y))
        indices = indices[evenly(indices.size, MAX_CURVE)]
        yield ReportCurve(name=name, x=(indices + 1.0).tolist(), y=y[indices].tolist())


def _line(training_set: TrainingSet, evaluated: EvaluatedFit, split: Split) -> Iterable[ReportCurve]:
    """The fitted function over the input, of a regression on one input."""
    if not training_set.task.of_numbers or len(evaluated.preparation.inputs) > 1:
        return ()
    algorithm = turned_back(training_set.preprocessing.target, training_set.algorithm)
    predict = partial(algorithm.predict, training_set.params, evaluated.fit.state)
    rows = split.test if split.test.size else split.train
    values = training_set.raw.values[training_set.target.rows[rows], 0]
    return over_input(evaluated.preparation, predict, values, training_set.target.y[rows])


def _warnings(training_set: TrainingSet, split: Split, *, wanted: bool) -> Iterator[str]:
    if not split.test.size:
        if wanted:
            yield "No row could be held out: nothing is known of rows the model has not seen."
    elif split.test.size < FEW:
        yield f"Only {split.test.size} rows were held out: the test metrics are rough."
    if training_set.target.codes is not None:
        counts = np.bincount(training_set.target.codes, minlength=len(training_set.classes))
        alone = [str(training_set.classes[code]) for code in np.flatnonzero(counts == 1)]
        if alone:
            more = f" and {len(alone) - NAMED} more" if len(alone) > NAMED else ""
            yield (
                f"Classes with a single row, kept for training, so that the test metrics do not cover them: "
                f"{', '.join(alone[:NAMED])}{more}."
            )


def _group_warnings(name: str | None, groups: Labels | None) -> Iterator[str]:
    """groups: (n,) of the rows held out."""
    count = 0 if groups is None else int(groups.max(initial=-1)) + 1
    if 0 < count < FEW_GROUPS:
        yield (
            f"The rows held out are of {count} groups by column {name!r}. Confidence intervals take groups as "
            f"independent, and fewer than {FEW_GROUPS} do not show how much groups differ."
        )


def _fit_warnings(fit: Fit[Any]) -> Iterator[str]:
    yield from fit.warnings
    if not fit.converged:
        yield f"The fit stopped after {fit.iterations} iterations, before it converged."
