"""Bootstrap a model: fit it again on rows drawn with replacement, and measure how far its numbers spread.

The result has an interval and a histogram for every coefficient (in the table's own units), for the predictions of
given rows and for every metric, a rectangle that holds all coefficients at once, and ellipses for pairs of them.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field, ValidationError

from app.base.errors import InvalidRequest
from app.base.faults import Fault
from app.base.references import DatasetReference
from app.ml.contract.columns import InputColumn, TableColumn
from app.ml.contract.model_reference import Name, VersionRef
from app.ml.contract.progress import Reporter, Stages
from app.ml.evaluation.validation import Validation
from app.ml.kinds.job import (
    Checked,
    Estimate,
    Inputs,
    JobContext,
    Kind,
    Needs,
    Outcome,
    Request,
    Result,
    Sheet,
    Version,
)
from app.ml.models.model import Model
from app.ml.statistics.refit_statistics import Distribution, Ellipse, Rectangle, distribution, ellipses, rectangle
from app.ml.tables.rows import read_rows
from app.ml.training.dry_run import row_look
from app.ml.training.fitting.bootstrap_refits import Numbers, Refits, refit
from app.ml.training.planning.cost import BASE_SECONDS
from app.ml.training.planning.counts import scaling_faults
from app.ml.training.planning.plan import Plan, plan
from app.ml.training.planning.projection import Projection
from app.ml.training.planning.relation_faults import repeated_rows
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.rows.training_set import TrainingSet

MOST_ROWS = 100
MOST_LEFT_OUT = 10_000
"""More rows than this are not left out one by one."""


class BootstrapRequest(Request):
    """Refit a model's training, or any other, on resamples of a dataset."""

    dataset: DatasetReference = Field(
        description="The dataset whose rows are drawn: its id, or its name, which means the newest of that name."
    )
    model: Name | None = Field(None, description="Fit what this model was trained by; or give `training`.")
    version: int | None = Field(None, ge=1, description="Version of the model; null: its champion, else the newest.")
    training: TrainSpec | None = Field(
        None,
        description="Training to repeat, where no model is given. Of its validation only `group` counts: "
        "whole groups are drawn. Null: that of `model`.",
    )
    resamples: int = Field(
        1000, ge=50, le=10_000, description="Number of times that rows are drawn and the model is fitted."
    )
    draw: Literal["rows", "noise"] = Field(
        "rows",
        description="Difference between refits. rows: they are drawn with replacement. noise: the rows stay, "
        "their targets are predictions of the first fit with normal noise of the size of its "
        "residuals, for regressions whose model is taken to be right.",
    )
    confidence: float = Field(0.9, ge=0.5, le=0.999, description="Share of the refits that intervals hold.")
    interval: Literal["percentile", "accelerated"] = Field(
        "percentile",
        description="accelerated corrects for bias and skewness, for one more fit per row: each is left out once.",
    )
    rows: list[dict[str, Any]] = Field(
        [], max_length=MOST_ROWS, description="Rows to predict by every refit, as for a prediction."
    )
    seed: int = Field(0, ge=0, lt=2**63, description="Seed of the draws: the same seed gives the same result.")


class BootstrapEstimate(Estimate):
    """Estimate of a bootstrap."""

    fits: int = Field(description="Number of fits that the job would make.")
    memory_bytes: int = Field(description="Rough peak of the process.")
    seconds: float = Field(description="Rough time from start to end.")


class Bootstrap(Result):
    """Distributions over the refits."""

    kind: Literal["bootstrap"] = Field(description="Kind of the job; it identifies the variant of this schema.")
    evidence: str = Field(description="Evidence behind the estimates: one sentence with rows, resamples and seed.")
    confidence: float = Field(description="Share of the refits that the intervals hold, from 0 to 1.")
    coefficients: list[Distribution] = Field(
        description="Distribution of each coefficient, in the table's own units; null for models without coefficients."
    )
    predictions: list[Distribution] = Field(description="Numbers, or the probability of each class.")
    measures: list[Distribution] = Field(
        description="Distribution of each metric over the refits, each on the rows that the refit has not seen."
    )
    rectangle: Rectangle | None = Field(
        None, description="Confidence rectangle of all coefficients at once, in their order."
    )
    ellipses: list[Ellipse] = Field([], description="Confidence ellipses of every pair of the first ten coefficients.")


def needs(request: BootstrapRequest) -> Needs:
    if (request.model is None) == (request.training is None):
        raise InvalidRequest(faults=[Fault("/training", "Give either a model or a training, and not both.")])
    if request.model is not None:
        return Needs((request.dataset,), (VersionRef(request.model, request.version),))
    projection = request.training and request.training.preprocessing.projection
    return Needs((request.dataset,), (projection.wanted,) if projection else ())


def check(request: BootstrapRequest, known: JobContext) -> Checked:
    (sheet,) = known.datasets
    if request.training and (
        faults := [*scaling_faults(request.training.preprocessing, [request.training.algorithm], "/training")]
    ):
        raise InvalidRequest(faults=faults)
    spec = _spec(request, known.models)
    projection = _projection(request, [(version, None) for version in known.models])
    planned = _planned(request, spec, sheet, sheet.rows, projection, memory_bytes=known.memory_bytes)
    _rows_to_predict(request, planned, sheet.columns)
    fits = 1 + request.resamples + (planned.units if request.interval == "accelerated" else 0)
    warnings = list(planned.warnings)
    if request.model is not None and known.models[0].header.receipt.get("data_digest") != sheet.digest:
        warnings.append("The model was trained on other data than these.")
    estimate = BootstrapEstimate(
        fits=fits,
        memory_bytes=planned.memory_bytes,
        seconds=round(BASE_SECONDS + (planned.seconds - BASE_SECONDS) * fits, 2),
        warnings=warnings,
    )
    names = dict.fromkeys([spec.algorithm.name, *(version.header.algorithm for version in known.models)])
    look = row_look(planned, spec.kinds)
    return Checked(request.model, algorithms=tuple(names), estimate=estimate, look=look)


def run(request: BootstrapRequest, inputs: Inputs, progress: Reporter) -> Outcome:
    stages = Stages(progress)
    (source,) = inputs.datasets
    stages(0.0, "reading the table")
    spec = _spec(request, [loaded.version for loaded in inputs.models])
    source = source.used_as(spec.kinds)
    table = source.read()
    projection = _projection(request, [(loaded.version, loaded.model) for loaded in inputs.models])
    planned = _planned(request, spec, source.sheet, table.num_rows, projection, memory_bytes=inputs.memory_bytes)
    training_set = TrainingSet.read(planned, table, inputs.each)
    del table

    def step(done: int, fits: int, result: Numbers) -> None:
        measures = {
            number.name: value for number, value in result.items() if number.group == "measure" and not number.label
        }
        stages(done / fits, f"fit {done} of {fits}", measures)

    refits = refit(
        training_set,
        _rows_to_predict(request, planned, source.sheet.columns),
        resamples=request.resamples,
        jackknife=request.interval == "accelerated",
        noise=request.draw == "noise",
        seed=request.seed,
        step=step,
    )
    return Outcome(result=_result(request, refits, planned, spec.validation.group))


def _projection(request: BootstrapRequest, found: Sequence[tuple[Version, Model | None]]) -> Projection | None:
    """The one that the training names, or that the model stands behind. found: in the order of `needs`."""
    if not found:
        return None
    version, model = found[0]
    return Projection(*version, model) if request.model is None else Projection.within(version.header, model)


def _spec(request: BootstrapRequest, versions: Sequence[Version]) -> TrainSpec:
    """With no rows held out: all are drawn from. versions: in the order of `needs`."""
    spec = request.training or _trained_by(next(iter(versions), None))
    idle = Validation(test_fraction=0.0, group=spec.validation.group)
    return spec.model_copy(update={"validation": idle})


def _trained_by(version: Version | None) -> TrainSpec:
    if version is None:
        raise InvalidRequest(faults=[Fault("/model", "There is no such model.")])
    if "calibrations" in version.header.receipt:
        detail = "It is calibrated, which refits are not: name the version that was calibrated, or give a training."
        raise InvalidRequest(faults=[Fault("/model", detail)])
    if "training" in version.header.receipt:
        detail = "It has learned further batches since its training: give a training of all their rows."
        raise InvalidRequest(faults=[Fault("/model", detail)])
    try:
        return TrainSpec.model_validate(version.header.receipt["spec"] | {"task": version.header.task})
    except (ValidationError, KeyError):
        raise InvalidRequest(
            faults=[Fault("/model", "The algorithm or parameters of its training no longer exist.")]
        ) from None


def _planned(
    request: BootstrapRequest,
    spec: TrainSpec,
    sheet: Sheet,
    rows: int,
    projection: Projection | None,
    *,
    memory_bytes: float,
) -> Plan:
    """Raises InvalidRequest with pointers into this request."""
    root = "/model" if request.training is None else "/training"
    related = None if spec.relations is None else [repeated_rows(f"{root}/relations", "a model without relations")]
    try:
        alone = spec.model_copy(update={"relations": None})
        planned = plan(alone, sheet.columns, rows, memory_bytes, projection=projection, whole=True)
    except InvalidRequest as error:
        faults = [f if f.pointer == "/dataset" else Fault(f"{root}{f.pointer}", f.detail, f.code) for f in error.faults]
        raise InvalidRequest(error.detail, faults=[*faults, *(related or ())]) from None
    faults = related or []
    if request.rows and not planned.task.supervised:
        faults.append(Fault("/rows", "Only models with a target predict something that can be compared."))
    if request.interval == "accelerated" and planned.units > MOST_LEFT_OUT:
        faults.append(Fault("/interval", f"Beyond {MOST_LEFT_OUT} rows take percentile."))
    if request.draw == "noise":
        if not planned.task.of_numbers or spec.preprocessing.target != "none":
            faults.append(Fault("/draw", "Noise can be added to the target of a regression, as it is."))
        if request.interval == "accelerated":
            faults.append(Fault("/interval", "Accelerated intervals belong to rows that are drawn."))
    if faults:
        raise InvalidRequest(faults=faults)
    more = () if projection is None else projection.warnings(sheet.digest)
    return planned._replace(warnings=(*planned.warnings, *more))


def _rows_to_predict(request: BootstrapRequest, planned: Plan, columns: tuple[TableColumn, ...]) -> pa.Table | None:
    """The rows to predict. Raises InvalidData for what is wrong with them."""
    if not request.rows:
        return None
    kinds = {column.name: column.kind for column in columns}
    inputs = [InputColumn(name=name, kind=kinds[name]) for name in planned.features]
    table = read_rows({"rows": request.rows}, inputs, max_rows=MOST_ROWS).table
    projection = planned.projection
    return projection.table(table) if projection and projection.fitted else table


def _result(request: BootstrapRequest, refits: Refits, planned: Plan, group: str | None) -> Bootstrap:
    rows = planned.rows
    groups: dict[str, list[Distribution]] = {"coefficient": [], "prediction": [], "measure": []}
    for place, number in enumerate(refits.numbers):
        draws, measured = refits.draws[:, place], number.group == "measure"
        left_out = None if measured or refits.left_out is None else refits.left_out[:, place]
        defined = draws[np.isfinite(draws)]
        mean = float(defined.mean()) if defined.size else np.nan
        estimate = mean if measured else float(refits.whole[place])
        messages = {"name": number.name, "label": number.label, "row": number.row, "average": number.average}
        groups[number.group].append(distribution(estimate, draws, left_out, request.confidence, **messages))
    own = [place for place, number in enumerate(refits.numbers) if number.group == "coefficient"]
    names = [" ".join(filter(None, (refits.numbers[place].name, refits.numbers[place].label))) for place in own]
    what = "" if group is None else f"in whole groups by column {group!r} "
    drawn = (
        f"{what}drawn from these with replacement"
        if request.draw == "rows"
        else "with simulated noise in their targets"
    )
    return Bootstrap(
        kind="bootstrap",
        warnings=list(planned.warnings),
        evidence=f"{request.resamples} fits of {rows} rows, {drawn}, seed {request.seed}.",
        confidence=request.confidence,
        coefficients=groups["coefficient"],
        predictions=groups["prediction"],
        measures=groups["measure"],
        rectangle=rectangle(refits.draws[:, own], request.confidence),
        ellipses=ellipses(names, refits.draws[:, own], request.confidence),
    )


KIND = Kind(
    operation="bootstrap_model",
    dry_run="validate_bootstrap",
    request=BootstrapRequest,
    result=Bootstrap,
    estimate=BootstrapEstimate,
    needs=needs,
    check=check,
    run=run,
)
