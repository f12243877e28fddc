"""Find the best model within a budget of seconds: candidates, ensemble, honest evaluation, leaderboard.

Candidates of families that differ on purpose are compared on the same folds, the cheap ones first. Those that are
surely worse are dropped, the others get more rows and folds. The best, the smallest of those that are as good, or an
ensemble that is surely better is fitted on all training rows and evaluated once on the test rows, which no choice has
seen. A fit begins only where there is time for it and for the final fit.
"""

from functools import partial

import numpy as np
from pydantic import Field

from app.base.errors import InvalidData, InvalidRequest
from app.base.faults import Fault
from app.ml.contract.progress import Reporter, Stages
from app.ml.evaluation.splits import holdout
from app.ml.kinds.job import Checked, Estimate, Inputs, JobContext, Kind, Needs, Outcome, Source
from app.ml.training.automl.automl_outcome import SearchEnd
from app.ml.training.automl.automl_request import AutomlPlan, AutomlRequest, context_plan, plan_automl
from app.ml.training.automl.automl_result import AutomlResult
from app.ml.training.automl.partial_leaderboard import partial_leaderboard
from app.ml.training.automl.portfolio import MAX_MEMBERS
from app.ml.training.automl.search_run import Limits, SearchRun
from app.ml.training.automl.time_budget import TimeBudget
from app.ml.training.automl.trial import Folds
from app.ml.training.dry_run import row_look
from app.ml.training.rows.row_checks import row_warnings
from app.ml.training.rows.training_set import TrainingSet

FEW_ROWS, MANY_ROWS, HELD_OUT_ROWS = 2_000, 100_000, 20_000
FOLDS_OF_FEW, FOLDS = 8, 5


class AutomlEstimate(Estimate):
    """Estimate of a search for the best model."""

    task: str = Field(description="classification or regression.")
    metric: str = Field(description="Metric that ranks the candidates.")
    rows: int = Field(description="Number of rows with a target.")
    candidates: int = Field(description="Number of candidates of the portfolio that can learn from this table.")
    memory_bytes: int = Field(description="Rough peak of the process.")
    seconds: float = Field(description="Longest time from start to end; of a budget of units a rough one.")


def needs(request: AutomlRequest) -> Needs:
    return Needs((request.dataset,))


def check(request: AutomlRequest, context: JobContext) -> Checked:
    planned = context_plan(request, context)
    reference = planned.offers[0].planned
    estimate = AutomlEstimate(
        task=planned.task.value,
        metric=planned.metric,
        rows=reference.rows,
        candidates=len(planned.offers),
        memory_bytes=max(offer.planned.memory_bytes for offer in planned.offers),
        seconds=request.seconds if request.units is None else round(request.units * _mean_seconds(planned), 1),
        warnings=[*reference.warnings],
    )
    names = tuple(sorted({offer.family for offer in planned.offers} | {"committee"}))
    check_rows = partial(_check_rows, request, planned) if planned.task.of_classes else None
    return Checked(request.model, None, names, estimate, check_rows, row_look(reference, request.kinds))


def _mean_seconds(planned: AutomlPlan) -> float:
    return float(np.mean([offer.seconds(offer.planned.rows) for offer in planned.offers]))


def _check_rows(request: AutomlRequest, planned: AutomlPlan, sources: list[Source]) -> None:
    """Raises InvalidRequest for classes that no fold can compare."""
    table = sources[0].used_as(request.kinds).read()
    training_set = TrainingSet.read(planned.offers[0].planned, table)
    if lonely := _lonely_classes(training_set):
        raise InvalidRequest(faults=[Fault("/target", lonely, "too_few")])


def _lonely_classes(training_set: TrainingSet) -> str | None:
    """Sentence on classes with a single row; None: there are none, or no classes."""
    if not training_set.task.of_classes:
        return None
    counts = np.bincount(np.asarray(training_set.target.codes), minlength=len(training_set.classes))
    names = [repr(training_set.classes[code]) for code in np.flatnonzero(counts == 1)]
    if not names:
        return None
    some = ", ".join(names[:10])
    return f"Classes with one row cannot be compared: {some}. Leave these rows out, or join the classes with others."


def run(request: AutomlRequest, inputs: Inputs, progress: Reporter) -> Outcome:
    spent = inputs.journal.spent_seconds
    budget = TimeBudget(None if request.units is not None else request.seconds, spent=spent)
    source, stages = inputs.datasets[0], Stages(progress)
    planned = plan_automl(request, source.sheet, inputs.memory_bytes)
    stages(0.0, "reading the table")
    table = source.used_as(request.kinds).read()
    training_set = TrainingSet.read(planned.offers[0].planned, table)
    if lonely := _lonely_classes(training_set):
        raise InvalidData(lonely)
    rng = np.random.Generator(np.random.PCG64(request.seed))
    split = training_set.holdout(planned.offers[0].planned.spec.validation.held_out, rng)
    folds = _folds(request, training_set, split.train, rng)
    search = SearchRun(
        planned.table,
        table,
        folds,
        planned.offers,
        metric=planned.metric,
        budget=budget,
        each=inputs.each_within,
        limits=Limits(request.limits.microseconds_a_row, planned.size_bytes, request.limits.seconds_to_train),
        stages=stages,
        max_units=request.units,
        seed=request.seed,
        makes_model=request.model is not None,
        max_members=MAX_MEMBERS[request.preset],
        journal=inputs.journal,
    )
    warnings = row_warnings(planned.offers[0].planned, table, training_set, split)
    return SearchEnd(request, planned, search, warnings).outcome(stages)


def _folds(request: AutomlRequest, training_set: TrainingSet, rows: np.ndarray, rng: np.random.Generator) -> Folds:
    """Raises InvalidData where there are too few rows."""
    count = request.validation.folds
    if count is None and rows.size >= MANY_ROWS and training_set.times is None and training_set.groups is None:
        strata = None if training_set.strata is None else training_set.strata[rows]
        return Folds(training_set, rows, [holdout(rows.size, HELD_OUT_ROWS / rows.size, rng, strata)])
    count = count or (FOLDS_OF_FEW if rows.size < FEW_ROWS else FOLDS)
    if training_set.strata is not None:
        counts = np.bincount(training_set.strata[rows])
        count = max(2, min(count, int(counts[counts > 0].min())))
    splits = training_set.folds(rows, count, rng)
    if not splits:
        raise InvalidData("There are too few training rows, or groups of them, for folds.")
    return Folds(training_set, rows, splits)


KIND = Kind(
    operation="find_best_model",
    dry_run="validate_best_model",
    request=AutomlRequest,
    result=AutomlResult,
    estimate=AutomlEstimate,
    needs=needs,
    check=check,
    run=run,
    partial=partial_leaderboard,
)
