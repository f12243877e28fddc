"""Suggest the next experiments: the rows whose measurement promises most, by a Gaussian process of those made so far.

The Gaussian process is fitted to a dataset of experiments, or is a stored version. The rows maximise an acquisition:
the expected improvement on the best value so far, the probability of an improvement, a confidence bound, or the mere
uncertainty. Of several suggestions each takes into account that those before it are being measured.
"""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple
from uuid import UUID

import numpy as np
import pyarrow as pa
from pydantic import Field

from app.base.errors import InvalidRequest
from app.base.faults import Fault
from app.base.references import DatasetReference
from app.base.wire import Wire
from app.ml.catalogue.algorithm_files import catalogue, every_entry
from app.ml.contract.algorithm import Matrix
from app.ml.contract.columns import InputColumn
from app.ml.contract.model_reference import ModelRef
from app.ml.contract.progress import Reporter, Stages, reporter
from app.ml.contract.random_function import RandomFunction
from app.ml.decisions.design import Design, ModelRows, outside_inputs
from app.ml.decisions.design_faults import design_faults
from app.ml.decisions.design_request import DesignRequest
from app.ml.evaluation.validation import Validation
from app.ml.kinds.job import Checked, Inputs, JobContext, Kind, Needs, Outcome, Request, Result, Sheet, Source
from app.ml.models.header import Header
from app.ml.models.model import Model, decode
from app.ml.numerics.acquisition.acquisition_value import Acquisition, AcquisitionName
from app.ml.numerics.acquisition.next_measurements import BatchName, Measured, next_measurements
from app.ml.numerics.gaussian_processes.process_kernel import KernelName
from app.ml.tables.casting import training_of
from app.ml.training.planning.plan import Plan, plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train

STARTS = 5
"""Best measured rows near which a search begins."""
SURE = 0.8
"""Share of measurements within their 95 % intervals below which the function is too sure of itself."""


class SuggestRequest(DesignRequest, Request):
    """Suggest the next experiments."""

    dataset: DatasetReference | None = Field(
        None,
        description="Experiments made so far: the id of a dataset, or its name, which means the newest of that name. "
        "Null: `surrogate` has learned from them.",
    )
    target: str | None = Field(None, description="Column of the dataset with the measured value; null: of `surrogate`.")
    features: list[str] | None = Field(
        None,
        min_length=1,
        max_length=1000,
        description="Columns of the dataset that an experiment sets. Null: every column but the target, `sigma`, text "
        "and identifier-like ones.",
    )
    sigma: str | None = Field(
        None, description="Column with the known error (standard deviation) of each measurement; null: all have one."
    )
    noise: float | None = Field(
        None, ge=0, le=1e100, description="Known error of every measurement; 0 for exact ones; null: it is learned."
    )
    kernel: KernelName = Field(
        "matern52", description="Kernel of the Gaussian process that is fitted to the dataset, as in its training."
    )
    surrogate: ModelRef | None = Field(
        None, description="A version of a `gaussian_process`, instead of a dataset; null: one is fitted to the dataset."
    )
    goal: Literal["maximise", "minimise"] = Field("maximise", description="Direction in which the target is better.")
    acquisition: AcquisitionName = Field(
        "expected_improvement",
        description="Value of a measurement: expected_improvement on the best value so far, probability_of_improvement "
        "by more than `margin`, confidence_bound (mean plus `kappa` standard deviations towards the goal), or "
        "uncertainty (standard deviation), which explores without a goal.",
    )
    kappa: float = Field(2.0, ge=0, le=100, description="Standard deviations of the confidence bound.")
    margin: float = Field(0.0, ge=0, le=1e100, description="Improvement that counts as none, in units of the target.")
    n_suggestions: int = Field(1, ge=1, le=50, description="Number of experiments to suggest, to be made at once.")
    batch: BatchName = Field(
        "sampled",
        description="Result that a suggestion expects of those before it. sampled: many possible ones, so that "
        "the batch has the largest expected improvement (q-EI). kriging_believer: the predicted mean. constant_liar: "
        "the worst value so far.",
    )
    confidence: float = Field(0.95, gt=0, lt=1, description="Confidence of the intervals.")
    seed: int = Field(0, ge=0, lt=2**63, description="Same seed, same suggestions.")


class Suggestion(Wire):
    """An experiment to make next."""

    row: dict[str, Any] = Field(description="Value of each input, as in a row to predict.")
    prediction: float = Field(description="Predicted mean of the measurement.")
    deviation: float = Field(description="Standard deviation of the function there, without the noise of measurements.")
    lower: float | None = Field(None, description="Lower end of the interval of the measurement; null: none limits it.")
    upper: float | None = Field(None, description="Upper end of the interval of the measurement; null: none limits it.")
    acquisition: float = Field(
        description="Value of the acquisition, given the suggestions before: in units of the target, or a probability."
    )
    outside_range: list[str] = Field(description="Inputs beyond the training range, or of a category that it lacks.")


class SuggestResult(Result):
    """Experiments to make next, in the order of their choice."""

    kind: Literal["suggest"] = Field(description="Kind of the job; it identifies the variant of this schema.")
    dataset: UUID | None = Field(None, description="Id of the dataset of experiments.")
    target: str = Field(description="Column of the measured value.")
    goal: str = Field(description="Direction in which the target is better: maximise or minimise.")
    acquisition: str = Field(description="Name of the acquisition.")
    best: float = Field(description="Best predicted mean among the experiments made so far.")
    rows: int = Field(description="Experiments that determine the function.")
    suggestions: list[Suggestion] = Field(description="Experiments to make next.")


class Surrogate(NamedTuple):
    model: Model
    function: RandomFunction
    table: pa.Table | None
    """The experiments, where they are at hand."""


def needs(request: SuggestRequest) -> Needs:
    own = () if request.dataset is None else (request.dataset,)
    return Needs(own, () if request.surrogate is None else (request.surrogate.wanted,))


def check(request: SuggestRequest, known: JobContext) -> Checked:
    faults = [*_source_faults(request)]
    if faults:
        raise InvalidRequest(faults=faults)
    if request.surrogate is not None:
        (version,) = known.models
        header = version.header
        faults = [*request.surrogate.choice_faults("/surrogate"), *_surrogate_faults(header)]
        if faults := [*faults, *design_faults(request, header.inputs)]:
            raise InvalidRequest(faults=faults)
        return Checked(version.model, algorithms=(header.algorithm,))
    (sheet,) = known.datasets
    planned = _planned(request, sheet, known.memory_bytes)
    if faults := design_faults(request, _inputs(planned)):
        raise InvalidRequest(faults=faults)
    return Checked(algorithms=(planned.spec.algorithm.name,))


def _source_faults(request: SuggestRequest) -> Iterator[Fault]:
    if request.surrogate is None:
        if request.dataset is None:
            yield Fault("/dataset", "A dataset or a surrogate is needed.", "missing")
        elif request.target is None:
            yield Fault("/target", "The column of the measured value is needed.", "missing")
        if request.sigma is not None and request.noise is not None:
            yield Fault("/noise", "Give a column of errors or one error, not both.")
        return
    own = {"dataset", "target", "features", "sigma", "noise", "kernel"} & request.model_fields_set
    for name, given in request:
        if name in own and given is not None:
            yield Fault(f"/{name}", "This belongs to a dataset; the surrogate is fitted already.")


def _surrogate_faults(header: Header) -> Iterator[Fault]:
    entry = every_entry().get(header.algorithm)
    able = [name for name, one in catalogue().items() if one.algorithm.random_function is not None]
    if entry is not None and entry.algorithm.random_function is None:
        detail = f"A {header.algorithm} has no uncertainty of its function: take a version of {', '.join(able)}."
        yield Fault("/surrogate/model", detail, "not_offered")
    elif ((training_of(header.receipt).get("spec") or {}).get("preprocessing") or {}).get("target", "none") != "none":
        detail = "It learned a function of the target, whose uncertainty is not that of the target."
        yield Fault("/surrogate/model", detail, "not_offered")


def _planned(request: SuggestRequest, sheet: Sheet, memory_bytes: float) -> Plan:
    spec = TrainSpec.model_validate(
        {
            "target": request.target,
            "features": request.features,
            "sigma": request.sigma,
            "task": "regression",
            "algorithm": {"name": "gaussian_process", "kernel": request.kernel, "sigma": request.noise},
            "validation": Validation(test_fraction=0),
            "seed": request.seed,
        }
    )
    return plan(spec, sheet.columns, sheet.rows, memory_bytes, whole=True)


def _inputs(planned: Plan) -> list[InputColumn]:
    """Inputs of the model to be fitted, as far as they are known before."""
    columns = {column.name: column for column in planned.columns}
    return [
        InputColumn(name=name, kind=columns[name].kind, minimum=columns[name].minimum, maximum=columns[name].maximum)
        for name in planned.features
    ]


def run(request: SuggestRequest, inputs: Inputs, progress: Reporter) -> Outcome:
    stages = Stages(progress)
    surrogate = _surrogate(request, inputs, stages)
    model, function = surrogate.model, surrogate.function
    if faults := design_faults(request, model.inputs):
        raise InvalidRequest(faults=faults)
    design = Design.of(request, model.inputs)
    rows = ModelRows.of(model, design)
    sign = 1.0 if request.goal == "maximise" else -1.0
    means = sign * function.mean(function.rows)
    best = float(means.max())
    rng = np.random.Generator(np.random.PCG64(request.seed))
    found = next_measurements(
        design.space,
        Measured(function, rows.matrix, sign * float(means.min())),
        Acquisition(request.acquisition, sign, best, request.margin, request.kappa),
        _starts(design, rows, surrogate, sign),
        request.n_suggestions,
        request.batch,
        rng,
        stages.within(0.3, 1.0, "searching for the next experiments"),
    )
    points = np.array([one.point for one in found])
    result = SuggestResult(
        kind="suggest",
        dataset=None if request.dataset is None else UUID(str(request.dataset)),
        target=str(model.target),
        goal=request.goal,
        acquisition=request.acquisition,
        best=sign * best,
        rows=len(function.rows),
        suggestions=[*_suggestions(request, design, rows, points, [one.value for one in found], function)],
        warnings=[*_warnings(model)],
    )
    return Outcome(result=result)


def _surrogate(request: SuggestRequest, inputs: Inputs, stages: Stages) -> Surrogate:
    if request.surrogate is not None:
        model, table = inputs.models[0].model, None
    else:
        (source,) = inputs.datasets
        stages(0.0, "reading the experiments")
        model, table = _fitted(request, source, inputs, stages)
    of = model.algorithm.random_function
    assert of is not None  # noqa: S101  `check` refuses other algorithms
    return Surrogate(model, of(model.params, model.state), table)


def _fitted(request: SuggestRequest, source: Source, inputs: Inputs, stages: Stages) -> tuple[Model, pa.Table]:
    planned, table = _planned(request, source.sheet, inputs.memory_bytes), source.read()
    trained = train(
        planned,
        table,
        data_digest=source.sheet.digest,
        reading=source.sheet.reading,
        progress=reporter(stages.within(0.0, 0.3, "fitting the function")),
        each=inputs.each,
    )
    return decode(trained.blob), table


def _starts(design: Design, rows: ModelRows, surrogate: Surrogate, sign: float) -> Matrix:
    """A point inside, and the best experiments that lie within the space."""
    points = design.start[None] if surrogate.table is None else design.points(surrogate.table)
    order = np.argsort(-sign * surrogate.function.mean(rows.matrix(points)), kind="stable")[:STARTS]
    return np.concatenate([design.start[None], points[order]])


def _suggestions(  # noqa: PLR0917  the parts of the list
    request: SuggestRequest,
    design: Design,
    rows: ModelRows,
    points: Matrix,
    values: list[float],
    function: RandomFunction,
) -> Iterator[Suggestion]:
    raw = rows.raw(points)
    predicted = rows.model.predict_raw(raw, request.confidence)
    deviations = np.sqrt(function.variance(rows.model.preparation.matrix(raw)))
    assert predicted.intervals is not None  # noqa: S101  a confidence was given
    for place, point in enumerate(points):
        lower, upper = (float(end) if np.isfinite(end) else None for end in predicted.intervals[place])
        yield Suggestion(
            row=design.row(point),
            prediction=float(predicted.values[place]),
            deviation=float(deviations[place]),
            lower=lower,
            upper=upper,
            acquisition=values[place],
            outside_range=outside_inputs(predicted.flags, place),
        )


def _warnings(model: Model) -> Iterator[str]:
    summary = model.algorithm.summary
    found = {} if summary is None else summary(model.params, model.state).get("leave_one_out") or {}
    if found and found["coverage"] < SURE:
        yield (
            f"Only {found['coverage']:.0%} of the measurements lie within the 95 % intervals that the others predict: "
            "the function is too sure of itself. Try a rougher kernel, such as matern32."
        )


KIND = Kind(
    operation="suggest_experiments",
    dry_run="validate_suggestion",
    request=SuggestRequest,
    result=SuggestResult,
    needs=needs,
    check=check,
    run=run,
)
