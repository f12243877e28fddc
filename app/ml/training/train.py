"""From a table and a request to a fitted model, its report and its golden rows. Pure: no I/O."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from app.ml.contract.algorithm import JSON, Each, in_turn
from app.ml.contract.progress import Reporter, Stages, unheard
from app.ml.evaluation.evaluation import EXAMPLES
from app.ml.evaluation.reliability import Bins
from app.ml.kinds.job import Trained, stacked
from app.ml.models import seen_rows
from app.ml.models.background import Background
from app.ml.models.conformal import ENOUGH, UNCALIBRATED, Calibration, chosen
from app.ml.models.contributions import with_background
from app.ml.models.golden import record_golden
from app.ml.models.model import Model, encode
from app.ml.models.seen_rows import SeenRows
from app.ml.monitoring import reference as references
from app.ml.training.certified import certified
from app.ml.training.drawn_rows import DrawnRows, draw
from app.ml.training.fitting.cross_validation import Fits, Validated, errors_of_folds, validate
from app.ml.training.fitting.fit import (
    Fitted,
    calibrate,
    centre_of,
    constant_of,
    evaluate_rows,
    evaluate_training_rows,
    fit_rows,
    predict_training_rows,
)
from app.ml.training.planning.interval_folds import interval_folds
from app.ml.training.planning.plan import Plan
from app.ml.training.reporting import coefficient_stability as stability
from app.ml.training.reporting.cluster_stability import stability_under_halving
from app.ml.training.reporting.described_clusters import described_clusters
from app.ml.training.reporting.interval_report import held_out_report
from app.ml.training.reporting.interval_report import warnings as interval_warnings
from app.ml.training.reporting.plotted_rows import plotted_rows, profiles
from app.ml.training.reporting.receipt import receipt
from app.ml.training.reporting.reporting import EvaluatedFit, report
from app.ml.training.reporting.spring_analogy import springs
from app.ml.training.rows.prepared_rows import SpoolRows
from app.ml.training.rows.training_set import TrainingSet
from app.ml.training.training_reference import training_reference

READ, FOLDED, FITTED, EVALUATED = 0.05, 0.7, 0.9, 0.97
"""Shares of a training that are complete after each of these stages."""


def train(
    planned: Plan,
    table: pa.Table,
    *,
    data_digest: str,
    reading: Mapping[str, JSON] | None = None,
    progress: Reporter = unheard,
    each: Each = in_turn,
    spool_rows: SpoolRows = stacked,
) -> Trained:
    """Split, prepare, fit, evaluate, encode.

    planned: for this table. table: the whole dataset; pass the only reference to it, and its memory is free during
    the fit. data_digest, reading (see `Sheet`): for the receipt. A table that needs more than the plan's memory is
    read, not held, if the algorithm can learn so (`fitting.out_of_core`); spool_rows: puts its prepared rows
    where they take no memory.

    The model is the one that was fitted on the training rows, and the report is about that very model.
    Raises InvalidData for rows that cannot be used, naming them.
    """
    stages, spec = Stages(progress), planned.spec
    rng = np.random.Generator(np.random.PCG64(spec.seed))
    drawn = draw(planned, table, rng, stages.within(0.0, READ, "reading the table"), each)
    planned = planned._replace(warnings=(*planned.warnings, *drawn.warnings))
    del table
    training_set, split = drawn.training_set, drawn.split
    validated, crossed = _validated(drawn, planned, rng, stages)
    received = stages.within(FOLDED if validated or crossed.folds else READ, FITTED, "fitting")
    if drawn.stream:
        fitted = drawn.stream.fit(training_set, received, spool_rows)
    else:
        fitted = fit_rows(training_set, split.train, spec.seed, received)
    stages(FITTED, "evaluating")
    evaluated = _evaluated(drawn, fitted, validated, spec.seed, rng)
    stages(EVALUATED, "writing the model")
    model = _model(drawn, fitted, crossed, planned, receipt(planned, data_digest, reading))
    result = report(training_set, split, evaluated, planned, data_digest)
    hashes = drawn.hashes
    seen = [] if hashes is None else [SeenRows.of(hashes, data_digest, planned.features, planned.target)]
    intervals = held_out_report(model, training_set, fitted, split.test)
    reference = None if planned.projection else training_reference(drawn, fitted, model)
    if planned.projection is not None:
        model = planned.projection.before(model)
    model = with_background(model, drawn.background)
    result = result.model_copy(
        update={
            "stability": stability_under_halving(training_set, split.train, spec.seed),
            "row_sample": plotted_rows(training_set, fitted, evaluated.predicted, spec.seed),
            "cluster_profiles": profiles(training_set, evaluated.predicted, split.train),
            "intervals": intervals,
            "guarantees": certified(drawn, fitted, evaluated, planned),
            "warnings": [*result.warnings, *interval_warnings(intervals, logarithm=_has_logarithm(training_set))],
        }
    )
    golden = record_golden(model, drawn.shown)
    return Trained(encode(model), result, golden, seen_rows.encode(seen), references.encode(reference))


def _has_logarithm(training_set: TrainingSet) -> bool:
    """True if the target has a logarithm, and no function of it is fitted."""
    return training_set.preprocessing.target == "none" and bool(training_set.target.y.min(initial=1.0) > 0)


def _validated(
    drawn: DrawnRows, planned: Plan, rng: np.random.Generator, stages: Stages
) -> tuple[Validated | None, Calibration]:
    """Validation by other fits of the training rows, where the request has one; and errors of such fits for intervals,
    where too few rows are held out.
    """

    def step(fraction: float, message: str) -> None:
        stages(READ + (FOLDED - READ) * fraction, message)

    spec, (rows, test) = planned.spec, drawn.split
    few = test.size < ENOUGH
    fits = Fits(drawn.training_set, rows, spec.seed, rng, step, drawn.copies, spec.algorithm.name if few else None)
    validated = validate(fits, spec.validation)
    if not few:
        return validated, UNCALIBRATED
    folds = interval_folds(spec, drawn.training_set.task, rows.size, test.size)
    return validated, errors_of_folds(fits._replace(rng=rng.spawn(1)[0]) if folds else fits, validated, folds)


def _evaluated(
    drawn: DrawnRows, fitted: Fitted, validated: Validated | None, seed: int, rng: np.random.Generator
) -> EvaluatedFit:
    training_set, split = drawn.training_set, drawn.split
    predicted = predict_training_rows(fitted)
    return EvaluatedFit(
        fit=fitted.fit,
        test=evaluate_rows(
            training_set,
            fitted,
            split.test,
            rng,
            examples=EXAMPLES,
            bins=Bins(),
            constant=constant_of(training_set, split.train),
        ),
        train=evaluate_training_rows(fitted, predicted, rng),
        validated=validated,
        equal=drawn.equal,
        preparation=fitted.preparation,
        conditioning=stability.look(training_set, fitted, seed),
        springs=None if drawn.stream else springs(training_set, fitted, training_set.numbers[split.train]),
        rows=drawn.rows,
        predicted=predicted,
    )


def _model(drawn: DrawnRows, fitted: Fitted, crossed: Calibration, planned: Plan, written: dict[str, JSON]) -> Model:
    training_set, split, spec = drawn.training_set, drawn.split, planned.spec
    return Model(
        name=spec.algorithm.name,
        task=training_set.task,
        params=training_set.params,
        state=fitted.fit.state,
        preparation=fitted.preparation,
        target=planned.target,
        classes=training_set.target.classes if training_set.task.of_classes else None,
        receipt=written,
        linearising=spec.preprocessing.target,
        calibration=chosen(calibrate(training_set, fitted, split.test), crossed),
        limits=drawn.limits,
        clusters=described_clusters(training_set, fitted, split.train),
        background=Background(centre_of(fitted)),
    )
