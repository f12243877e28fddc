"""Select columns by what a learner loses without them, on the same folds, and train on those chosen.

Forward selection and backward elimination with any learner that predicts a target, recursive elimination with learners
that have weights or importances. Columns are those of the table: the indicators of one column stay together. The test
rows take no part, so that the trained version is evaluated on rows that have chosen nothing. The selection is repeated
on random halves of the rows, which shows the columns that would be selected again.
"""

from collections.abc import Iterator
from typing import Literal

import numpy as np
from pydantic import Field

from app.base.errors import InvalidData, InvalidRequest
from app.base.faults import Fault
from app.base.references import DatasetReference
from app.base.suggestions import no_such
from app.ml.contract.model_reference import Name
from app.ml.contract.progress import Reporter, Stages, reporter
from app.ml.evaluation.validation import Validation
from app.ml.kinds.job import Checked, Estimate, Inputs, JobContext, Kind, Needs, Outcome, Request, Result, Sheet
from app.ml.statistics.metric_value import MEASURES
from app.ml.training.dry_run import row_look
from app.ml.training.planning.cost import BASE_SECONDS
from app.ml.training.planning.counts import scaling_faults
from app.ml.training.planning.plan import Plan, plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.rows.training_set import TrainingSet
from app.ml.training.search.column_selection import (
    Rule,
    SelectionLimits,
    SelectionPath,
    Strategy,
    chosen_size,
    fits_of,
    path_of,
)
from app.ml.training.search.column_subsets import ColumnSubsets, without_others
from app.ml.training.search.column_weights import weight_faults
from app.ml.training.search.ranking_criteria import higher_is_better, metric_fault, ranked_task
from app.ml.training.search.search import usual_metric
from app.ml.training.search.selection_resampling import Repeated, SelectionStability, stability_of
from app.ml.training.search.selection_steps import SelectionStep, doubts, steps_of
from app.ml.training.train import train

SELECTED, COMPARED = 0.5, 0.9
"""Progress when columns are chosen, and when the halves have been compared."""
MOST_FITS = 1_000_000
LUCKY = (
    "The folds that validate the chosen columns have chosen them too, which flatters them: the test metrics of a "
    "version trained on them show what to expect."
)


class SelectRequest(TrainSpec, Request):
    """Select columns by what a learner loses without them."""

    model: Name | None = Field(
        None, description="The model that gets a version trained on the chosen columns; null: none does."
    )
    dataset: DatasetReference = Field(
        description="The id of an uploaded dataset, or its name: the newest dataset of that name."
    )
    strategy: Strategy = Field(
        "forward",
        description="forward: from the best single column, add the column that validates best. backward: from all "
        "columns, leave out the one without which the rest validates best. recursive_elimination: from all columns, "
        "leave out those of least weight or importance, for linear learners, trees and linear support vector machines.",
    )
    validation: Validation = Field(
        Validation(method="kfold"),
        description="Validation by kfold; by default 5 folds of the rows that 20% test rows leave.",
    )
    metric: str | None = Field(
        None,
        description="Metric of the report that chooses, such as rmse, mae, r2, accuracy, log_loss or roc_auc. Null: "
        "rmse for numbers, log_loss for classes, but accuracy for degrees of membership.",
    )
    rule: Rule = Field(
        "one_standard_error",
        description="one_standard_error: the fewest columns whose metric is within one standard error of the best. "
        "best: the columns of the best metric, the fewest of equals.",
    )
    min_columns: int = Field(1, ge=1, description="Smallest number of columns that may be chosen.")
    max_columns: int | None = Field(
        None, ge=1, description="Largest number of columns that may be chosen; null: all. Forward selection ends there."
    )
    step: int = Field(
        1, ge=1, le=10_000, description="Number of columns that recursive elimination leaves out at a time."
    )
    resamples: int = Field(
        10,
        ge=0,
        le=200,
        description="Number of random halves of the training rows on which as many columns are selected again, for the "
        "stability of the choice. 0: none; else at least 2.",
    )

    @property
    def as_training(self) -> TrainSpec:
        """The training of the version, with all columns."""
        own = self.model_dump(mode="json", include={*TrainSpec.model_fields}) | {
            "validation": self.validation.model_dump(include={"test_fraction", "group", "time"})
        }
        return TrainSpec.model_validate(own)


class SelectEstimate(Estimate):
    """Estimate of a selection."""

    columns: int = Field(description="Number of columns to select from.")
    fits: int = Field(description="Number of fits that the job would make at most.")
    memory_bytes: int = Field(description="Rough peak of the process.")
    seconds: float = Field(description="Rough time from start to end.")


class SelectResult(Result):
    """Chosen columns, and the way to them."""

    kind: Literal["select"] = Field(description="Kind of the job; it identifies the variant of this schema.")
    strategy: str = Field(description="Strategy of the selection.")
    metric: str = Field(description="Metric that chose.")
    better: Literal["lower", "higher"] = Field(description="Direction of the metric: lower or higher is better.")
    chosen: list[str] = Field(description="Chosen columns, in the order of the table: the `features` of a training.")
    left_out: list[str] = Field(description="The other columns.")
    steps: list[SelectionStep] = Field(description="Numbers of columns, in the order of the strategy.")
    evidence: str = Field(description="Evidence behind the metrics: one sentence with rows, folds and seed.")
    stability: SelectionStability | None = Field(
        None, description="Selections on halves of the rows; null: there are none, or too few succeeded."
    )


def needs(request: SelectRequest) -> Needs:
    return Needs((request.dataset,))


def check(request: SelectRequest, known: JobContext) -> Checked:
    (sheet,) = known.datasets
    faults = [*_faults(request), *scaling_faults(request.preprocessing, [request.algorithm])]
    planned = None
    try:
        planned = _plan(request, request.as_training, sheet, known)
    except InvalidRequest as error:
        faults += error.faults
    if planned is not None:
        faults += _planned_faults(request, planned, sheet, known)
    if faults or planned is None:
        raise InvalidRequest(faults=list(dict.fromkeys(faults)))
    d, folds = len(planned.features), request.validation.folds
    limits = _limits(request, d)
    fits = fits_of(request.strategy, d, limits, folds)
    smaller = SelectionLimits(limits.most, limits.most, limits.step)
    again = request.resamples * fits_of(request.strategy, d, smaller, folds)
    if fits + again > MOST_FITS:
        detail = (
            f"These are {fits + again} fits, and a selection makes {MOST_FITS}: set max_columns, step or resamples."
        )
        raise InvalidRequest(faults=[Fault("/strategy", detail, "too_large")])
    each = max(0.0, planned.seconds - BASE_SECONDS)
    estimate = SelectEstimate(
        columns=d,
        fits=fits + again + (request.model is not None),
        memory_bytes=planned.memory_bytes,
        seconds=round(BASE_SECONDS + each * (fits + again / 2 + 1), 2),
        warnings=[*planned.warnings],
    )
    look = row_look(planned, request.kinds)
    return Checked(request.model, None, (request.algorithm.name,), estimate, look=look)


def _limits(request: SelectRequest, columns: int) -> SelectionLimits:
    most = columns if request.max_columns is None else min(request.max_columns, columns)
    return SelectionLimits(min(request.min_columns, most), most, request.step)


def _faults(request: SelectRequest) -> Iterator[Fault]:
    if request.validation.method != "kfold":
        yield Fault("/validation/method", "A selection validates by kfold.")
    if request.relations is not None:
        yield Fault("/relations", "Columns are selected, and relations are none: leave them out.")
    if request.preprocessing.projection is not None:
        yield Fault("/preprocessing/projection", "Columns behind a projection cannot be left out one by one.")
    if request.preprocessing.basis:
        detail = "Functions of several columns cannot be selected by column: leave them out, or make columns of them."
        yield Fault("/preprocessing/basis", detail)
    if request.metric is not None and request.metric not in MEASURES:
        yield Fault("/metric", no_such("There is no metric", request.metric, MEASURES))
    if request.max_columns is not None and request.max_columns < request.min_columns:
        yield Fault("/max_columns", "max_columns is below min_columns.")
    if request.resamples == 1:
        yield Fault("/resamples", "One half shows no stability: give 0, or at least 2.")
    if request.strategy == "recursive_elimination":
        yield from weight_faults(request)


def _planned_faults(request: SelectRequest, planned: Plan, sheet: Sheet, known: JobContext) -> Iterator[Fault]:
    d = len(planned.features)
    if not planned.task.supervised:
        yield Fault("/algorithm/name", "Columns are selected by the prediction of a target.")
    elif request.metric in MEASURES and (fault := metric_fault(request.metric, planned.task, compared=False)):
        yield Fault("/metric", fault)
    if d < 2:
        yield Fault("/features", f"There is one column to learn from, {planned.features[0]!r}, and nothing to select.")
    elif request.min_columns > d:
        yield Fault("/min_columns", f"There are {d} columns.")
    yield from _named_columns(request, planned, sheet, known)


def _named_columns(request: SelectRequest, planned: Plan, sheet: Sheet, known: JobContext) -> Iterator[Fault]:
    """Parameters of the algorithm that name columns, which may be left out."""
    half = len(planned.features) // 2
    for names in filter(None, (planned.features[:half], planned.features[half:])):
        try:
            _plan(request, without_others(planned.spec, names), sheet, known)
        except InvalidRequest as error:
            for fault in error.faults:
                if fault.pointer.startswith("/algorithm/") and fault.code == "unknown_column":
                    yield Fault(fault.pointer, "This column may be left out: a selection takes no names of columns.")


def _plan(request: SelectRequest, spec: TrainSpec, sheet: Sheet, context: JobContext | Inputs) -> Plan:
    in_doubt = context.in_doubt or ranked_task(request.metric)
    return plan(spec, sheet.columns, sheet.rows, context.memory_bytes, in_doubt=in_doubt, whole=True)


def run(request: SelectRequest, inputs: Inputs, progress: Reporter) -> Outcome:
    (source,), stages = inputs.datasets, Stages(progress)
    stages(0.0, "reading the table")
    planned = _plan(request, request.as_training, source.sheet, inputs)
    source = source.used_as(request.kinds)
    table = source.read()
    subsets = _subsets(request, planned, TrainingSet.read(planned, table, inputs.each))
    limits = _limits(request, len(subsets.names))
    path = _path(request, subsets, limits, stages)
    chosen = path.sets[chosen_size(path, subsets, limits, request.rule)]
    stability = None
    if request.resamples and len(chosen) < len(subsets.names):
        again = stages.within(SELECTED, COMPARED, "selecting on halves of the rows")
        repeated = Repeated(request.strategy, request.step, request.resamples)
        stability = stability_of(repeated, subsets, chosen, inputs.each, again)
    names = [subsets.names[place] for place in chosen]
    higher, score = higher_is_better(subsets.metric), path.scores[path.sets.index(chosen)].values
    result = SelectResult(
        kind="select",
        strategy=request.strategy,
        metric=subsets.metric,
        better="higher" if higher else "lower",
        chosen=names,
        left_out=[name for name in subsets.names if name not in names],
        steps=steps_of(path, subsets, chosen),
        evidence=f"Every set of columns is validated on the same {len(subsets.splits)} folds of {subsets.rows.size} "
        f"training rows (seed {request.seed}).",
        stability=stability,
        warnings=[*planned.warnings, *doubts(subsets, score, stability, higher=higher), LUCKY],
    )
    if request.model is None:
        return Outcome(result=result)
    planned = _plan(request, without_others(planned.spec, names), source.sheet, inputs)
    trained = train(
        planned._replace(selected="The columns were selected by these rows."),
        table,
        data_digest=source.sheet.digest,
        reading=source.sheet.reading,
        progress=reporter(stages.within(COMPARED, 1.0, "training on the chosen columns")),
        each=inputs.each,
    )
    return Outcome(trained, result)


def _subsets(request: SelectRequest, planned: Plan, training_set: TrainingSet) -> ColumnSubsets:
    """The training rows, as a training with this seed has them, in folds."""
    rng = np.random.Generator(np.random.PCG64(request.seed))
    rows = training_set.holdout(planned.spec.validation.held_out, rng).train
    splits = training_set.folds(rows, request.validation.folds, rng)
    if not splits:
        raise InvalidData("There are too few training rows for folds.")
    metric = request.metric or usual_metric(training_set, [planned.spec])
    return ColumnSubsets(training_set, planned.spec, rows, splits, metric)


def _path(request: SelectRequest, subsets: ColumnSubsets, limits: SelectionLimits, stages: Stages) -> SelectionPath:
    d = len(subsets.names)
    ends = (limits.most, 0) if request.strategy == "forward" else (limits.fewest, d)

    def report(size: int) -> None:
        share = abs(size - ends[1]) / max(1, abs(ends[0] - ends[1]))
        stages(SELECTED * share, f"{size} of {d} columns")

    return path_of(request.strategy, subsets, limits, subsets.training_set.each, report)


KIND = Kind(
    operation="select_columns",
    dry_run="validate_selection",
    request=SelectRequest,
    result=SelectResult,
    estimate=SelectEstimate,
    needs=needs,
    check=check,
    run=run,
)
