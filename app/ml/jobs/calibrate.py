"""Calibrate the probabilities of a classifier on rows that it was not trained on: a new version of a model.

Part of these rows fits a map of the probabilities, by a sigmoid (Platt) or by isotonic regression, for each class
against all others. The remaining rows, which neither the model nor the map has seen, measure the probabilities before
and after: expected calibration error, log loss and Brier score with intervals, and reliability curves with error bars.
Where two of these metrics are worse after it, no version is made unless the request demands it.
Nothing else of the model changes. The rejection thresholds of a model apply to calibrated probabilities.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import pyarrow as pa
from pydantic import Field

from app.base.errors import InvalidRequest
from app.base.faults import Fault
from app.base.references import DatasetReference
from app.ml.contract.algorithm import JSON, Task
from app.ml.contract.model_reference import ModelRef, Name
from app.ml.contract.progress import Reporter, Stages
from app.ml.evaluation.reliability import Bins, Reliability, Strategy
from app.ml.evaluation.report import Report
from app.ml.kinds.job import (
    Checked,
    Inputs,
    JobContext,
    Kind,
    Loaded,
    Needs,
    Outcome,
    Request,
    Result,
    Sheet,
    Trained,
    Version,
)
from app.ml.models import seen_rows
from app.ml.models.golden import record_golden, spaced
from app.ml.models.model import Model, encode
from app.ml.numerics.class_probabilities.calibrator import Method
from app.ml.numerics.processor import processor
from app.ml.tables.casting import kinds_wanted, recast_columns, training_of
from app.ml.training.reporting.receipt import libraries
from app.ml.training.reporting.reporting import summary_of
from app.ml.training.versions.calibration_roles import Roles
from app.ml.training.versions.calibration_rows import (
    FEWEST,
    CalibrationRows,
    Division,
    calibration_rows,
    reuse,
    seen_after,
)
from app.ml.training.versions.class_calibration import MeasuredProbabilities, calibrate, doubts, losses, measure
from app.ml.training.versions.table_evaluation import EvaluatedModel, column_faults, split_columns, trainings, warnings
from app.ml.training.versions.unseen_rows import NOT_KNOWN

CARRIED = "reading", "projection", "members", "combined", "batches"
"""Entries of a receipt that hold for the calibrated version too."""
SKIPPED = "No version was made: `store_worse` makes it nevertheless."


class CalibrateRequest(ModelRef, Request):
    """Calibrate the probabilities of a version of a classifier."""

    dataset: DatasetReference = Field(
        description="The id or the name of a dataset with the columns and the target of the model. Rows that the model "
        "was trained on are left out. A name means the newest dataset of that name."
    )
    method: Method = Field(
        "sigmoid",
        description="Form of the maps. `sigmoid`: a logistic function of the log odds, with two numbers (Platt "
        "scaling). `isotonic`: the ascending function with the least squared error, for 1,000 rows or more.",
    )
    new_model: Name | None = Field(
        None,
        description="Name of the model that gets the calibrated version; made if it does not exist. Null: the model "
        "that is calibrated.",
    )
    test_fraction: float = Field(
        0.5,
        gt=0,
        lt=1,
        description="Share of the rows that measure the probabilities, class by class; the others fit the maps. "
        "Groups that the training kept together stay so; of a training in order of time the latest rows measure.",
    )
    n_bins: int = Field(10, ge=1, le=100, description="Number of bins of the reliability curves.")
    strategy: Strategy = Field(
        "uniform", description="Widths of the bins. `uniform`: all are equal. `quantile`: all have equally many rows."
    )
    confidence: float = Field(
        0.95, ge=0.5, le=0.999, description="Confidence level of the intervals of `before` and `after`."
    )
    seed: int = Field(0, ge=0, lt=2**63, description="Seed of the division of the rows, and of bootstrap intervals.")
    store_worse: bool = Field(
        False,
        description="Stores the calibrated version, with a warning, even where two of the three metrics of its "
        "probabilities are worse than before on the rows that measure them. False: no version is made then.",
    )


class CalibrateResult(Result):
    """Probabilities of a classifier before and after calibration."""

    kind: Literal["calibrate"] = Field(description="Kind of the job; it identifies the variant of this schema.")
    model: str = Field(description="Name of the model that was calibrated.")
    base_version: int = Field(description="Version that was calibrated, counted from 1.")
    base_digest: str = Field(description="sha256: of the bytes of this version.")
    method: Method = Field(description="Form of the maps: sigmoid or isotonic.")
    rows_fit: int = Field(description="Number of rows that fitted the maps.")
    rows_test: int = Field(description="Number of other rows, which measured the probabilities before and after.")
    before: Reliability = Field(description="Probabilities of the version that was calibrated.")
    after: Reliability = Field(description="Probabilities of the new version.")
    stored: bool = Field(
        True,
        description="True where the job made a version; false where its probabilities are worse than before, and "
        "`store_worse` was not set.",
    )


def needs(request: CalibrateRequest) -> Needs:
    return Needs((request.dataset,), (request.wanted,))


def check(request: CalibrateRequest, known: JobContext) -> Checked:
    (sheet,), (version,) = known.datasets, known.models
    if faults := [*_faults(request, version, sheet)]:
        raise InvalidRequest(faults=faults)
    return Checked(request.new_model or request.model, algorithms=(version.header.algorithm,))


def run(request: CalibrateRequest, inputs: Inputs, progress: Reporter) -> Outcome:
    (source,), (loaded,) = inputs.datasets, inputs.models
    model, digest, stages = loaded.model, source.sheet.digest, Stages(progress)
    stages(0.0, "reading the table")
    names = [column.name for column in model.inputs]
    roles = Roles.of(model.receipt).within({column.name for column in source.sheet.columns})
    beside = [*split_columns(trainings(model.receipt, digest)), *roles.named.values()]
    used = source.used_as(kinds_wanted(model, source.sheet.columns))
    table = used.read(dict.fromkeys([*names, str(model.target), *beside]))
    division = Division(request.test_fraction, request.seed, roles)
    rows = calibration_rows(loaded, table, digest, division, stages.within(0.1, 0.7, "predicting"))
    stages(0.7, "fitting the maps")
    after = replace(calibrate(model, rows.fit, request.method), receipt=_receipt(request, loaded, digest))
    stages(0.75, "measuring")
    measured = measure(after, rows.test, Bins(request.n_bins, request.strategy, request.confidence), request.seed)
    evaluated, result = reuse(loaded, rows, digest), _result(request, loaded, rows, measured)
    if not request.store_worse and (worse := [*losses(measured)]):
        return Outcome(
            result=result.model_copy(update={"stored": False, "reuse": evaluated, "warnings": [*worse, SKIPPED]})
        )
    stages(0.95, "writing the model")
    golden = record_golden(after, table.select(names).take(pa.array(spaced(rows.test.numbers))))
    report = _report(request, loaded, after, rows, measured).model_copy(update={"reuse": evaluated})
    trained = Trained(encode(after), report, golden, seen_after(loaded, rows, table, digest))
    return Outcome(trained, result)


def _faults(request: CalibrateRequest, version: Version, sheet: Sheet) -> Iterator[Fault]:
    header = version.header
    yield from request.choice_faults()
    if not Task(header.task).of_classes:
        yield Fault("/model", f"It does {header.task}: only a classifier can be calibrated.", "not_offered")
        return
    if (classes := len(header.classes or ())) < 2:
        yield Fault("/model", "It has one class, whose probability is always 1.", "not_offered")
    found = [*column_faults(header, header.target, sheet.columns, sheet.rows)]
    yield from (_of_dataset(fault, header.target) for fault in found)
    recast = recast_columns(sheet.columns, kinds_wanted(header, sheet.columns))
    yield from Roles.of(header.receipt).faults({column.name: column for column in recast})
    least = classes * (FEWEST + 1)
    if not found and sheet.rows < least:
        detail = f"It has {sheet.rows} rows; {classes} classes need {least} or more: {FEWEST} of each fit the maps."
        yield Fault("/dataset", detail, "too_few_rows")


def _of_dataset(fault: Fault, target: str | None) -> Fault:
    """A fault of a column that the request does not name."""
    named = f"Target {target!r}: {fault.detail}" if fault.pointer == "/target" else fault.detail
    return fault._replace(pointer="/dataset", detail=named)


def _receipt(request: CalibrateRequest, loaded: Loaded, digest: str) -> dict[str, JSON]:
    """data_digest: of the rows that fitted the maps. calibrations: all of them, in their order."""
    before, version = loaded.model.receipt, loaded.version
    base = {"model": version.model, "version": version.version, "digest": version.digest}
    fitted = request.model_dump(mode="json", include={"method", "test_fraction", "seed"}) | {"data_digest": digest}
    training = {} if "members" in before else {"training": dict(training_of(before))}
    return (
        {name: before[name] for name in CARRIED if name in before}
        | training
        | {
            "seed": request.seed,
            "data_digest": digest,
            "base": base | {"data_digest": before["data_digest"]},
            "calibrations": [*before.get("calibrations", []), fitted],
            "libraries": libraries(),
            "processor": processor().name,
        }
    )


def _report(
    request: CalibrateRequest, loaded: Loaded, model: Model, rows: CalibrationRows, measured: MeasuredProbabilities
) -> Report:
    evaluation = measured.evaluation
    listed = model.preparation.listed
    offsets, scales = listed.scaling.units
    return Report(
        task=model.task,
        evidence=_evidence(request, loaded, rows),
        rows_train=rows.fit.numbers.size,
        rows_test=rows.test.numbers.size,
        seed=request.seed,
        test=evaluation.metrics,
        train=[],
        confusion_matrix=evaluation.confusion_matrix,
        rejection=evaluation.rejection,
        reliability=measured.after.curves,
        curves=evaluation.curves,
        converged=True,
        iterations=0,
        columns=list(listed.layout.names),
        offsets=offsets.tolist(),
        scales=scales.tolist(),
        summary=summary_of(model.algorithm, model.params, model.state, model.preparation, model.classes or ()),
        warnings=[*_warnings(request, loaded, model, rows, measured)],
    )


def _evidence(request: CalibrateRequest, loaded: Loaded, rows: CalibrationRows) -> str:
    version, fit, test = loaded.version, rows.fit.numbers.size, rows.test.numbers.size
    return (
        f"The metrics rest on {test} rows that neither {version.model!r} version {version.version} nor its maps have "
        f"seen; {fit} others fitted the maps. {_divided(request, rows)}"
    )


def _divided(request: CalibrateRequest, rows: CalibrationRows) -> str:
    """Division and weights of the rows, in sentences."""
    group, time, weights = rows.roles
    how = "class by class" if group is None else f"in whole groups by column {group!r}"
    how = f"They were divided at random, {how}, with seed {request.seed}."
    if time is not None:
        how = f"Those that measure are the latest by column {time!r}, from {rows.since} on."
    return how if weights is None else f"{how} Rows count by column {weights!r}."


def _warnings(
    request: CalibrateRequest, loaded: Loaded, model: Model, rows: CalibrationRows, measured: MeasuredProbabilities
) -> Iterator[str]:
    if rows.unknown:
        yield f"{rows.unknown} rows are of classes that the model does not know, and were left out."
    yield from Roles.of(loaded.model.receipt).warnings(rows.roles.named.values())
    yield from seen_rows.warnings(rows.chosen.found, left_out=True)
    if loaded.seen is None:
        yield NOT_KNOWN
    yield from losses(measured)
    yield from doubts(model, request.method, rows.fit)
    yield from warnings(EvaluatedModel(measured.evaluation, rows.test.numbers, {}), seen=False)


def _result(
    request: CalibrateRequest, loaded: Loaded, rows: CalibrationRows, measured: MeasuredProbabilities
) -> CalibrateResult:
    return CalibrateResult(
        kind="calibrate",
        model=loaded.version.model,
        base_version=loaded.version.version,
        base_digest=loaded.version.digest,
        method=request.method,
        rows_fit=rows.fit.numbers.size,
        rows_test=rows.test.numbers.size,
        before=measured.before,
        after=measured.after,
    )


KIND = Kind(
    operation="calibrate_model",
    dry_run="validate_calibration",
    request=CalibrateRequest,
    result=CalibrateResult,
    needs=needs,
    check=check,
    run=run,
)
