"""Compare versions of models on the same rows of a dataset, pair by pair.

Versions that predict a target are compared by the differences of their metric, with paired intervals, on rows that no
training of them has seen. Clusterings are compared by the agreement of their labels: there is no ground truth.
"""

from collections.abc import Iterator, Sequence
from typing import Literal
from uuid import UUID

import numpy as np
from pydantic import Field

from app.base.errors import InvalidData, InvalidRequest
from app.base.faults import Fault
from app.base.references import DatasetReference
from app.base.wire import Wire
from app.ml.contract.algorithm import Labels, Task
from app.ml.contract.model_reference import ModelRef
from app.ml.contract.progress import Progress, Reporter, Stages, part_of, reporter
from app.ml.contract.task import DESCRIPTION as TASK
from app.ml.evaluation.evaluation import NO_OPTIONS
from app.ml.evaluation.metrics import NO_PROBABILITIES
from app.ml.kinds.job import Checked, Inputs, JobContext, Kind, Loaded, Needs, Outcome, Request, Result, Version
from app.ml.statistics.intervals import Resamples
from app.ml.statistics.metric_value import Metric
from app.ml.statistics.resampling import Rows
from app.ml.training.planning.relation_faults import evaluation_faults
from app.ml.training.versions.compared_rows import VersionRows, columns_of, common_reuse, common_rows, rows_of, truth_of
from app.ml.training.versions.table_evaluation import (
    EvaluatedModel,
    column_faults,
    evaluate_table,
    groups_of_training,
    warnings,
)
from app.ml.training.versions.version_pairs import VersionPair, agreements, differences, metric_of

NO_TRUTH = (
    "There is no ground truth: agreement shows that two clusterings group the rows alike, but not whether either is "
    "right."
)
OWN_SPACES = (
    "The versions see different columns, or scale them differently. Each silhouette is measured in the columns of its "
    "own version, so the silhouettes do not rank these versions."
)


OF_NUMBERS, OF_CLASSES = ("rmse", "mae"), ("log_loss", "accuracy")
"""Metrics of which a pair of versions has a difference."""


class CompareRequest(Request):
    """Compare versions of models on the same rows of a dataset."""

    dataset: DatasetReference = Field(
        description="A dataset that has the columns of every version: its id, or its name, which means the newest of "
        "that name."
    )
    versions: list[ModelRef] = Field(
        min_length=2,
        max_length=20,
        description="Versions to compare. They have the same task, and the same target if they predict one.",
    )
    target: str | None = Field(
        None,
        description="Column of the truth. Null: the target that the versions were trained on; clusterings have none.",
    )
    rows: Literal["all", "unseen"] | None = Field(
        None,
        description="Rows to use. unseen: those that the training of no version has seen, by the rows that each held "
        "out and by equal values in all columns used. all: every row. Null: unseen for versions that predict a target, "
        "all for clusterings.",
    )
    metric: Literal["rmse", "mae", "log_loss", "accuracy"] | None = Field(
        None,
        description="Metric of the differences: rmse or mae of numbers, log_loss or accuracy of classes. Null: rmse or "
        "log_loss, but accuracy where a version has no probabilities; clusterings have none.",
    )
    seed: int = Field(0, ge=0, lt=2**63, description="Seed of the bootstrap intervals.")


class ComparedVersion(Wire):
    """A version among those that are compared, with its own metrics."""

    model: str = Field(description="Name of the model.")
    version: int = Field(description="Version of the model, counted from 1.")
    digest: str = Field(description="sha256: of the version's bytes.")
    algorithm: str = Field(description="Name of the algorithm.")
    training_rows: int | None = Field(
        description="Number of rows of the dataset that the training of this version has seen. Null: not known."
    )
    metrics: list[Metric] = Field(description="Metrics of this version on the compared rows.")


class CompareResult(Result):
    """Versions side by side, and every pair of them."""

    kind: Literal["compare"] = Field(description="Kind of the job; it identifies the variant of this schema.")
    dataset: UUID = Field(description="Id of the dataset whose rows were used.")
    task: str = Field(description=TASK)
    target: str | None = Field(None, description="Column of the truth; null for clusterings.")
    metric: str | None = Field(None, description="Metric of the differences; null for clusterings.")
    evidence: str = Field(description="Evidence behind the metrics: one or two sentences that name the rows.")
    rows: int = Field(description="Number of rows that every version was evaluated on.")
    versions: list[ComparedVersion] = Field(description="Compared versions, in the order of the request.")
    pairs: list[VersionPair] = Field(description="Every pair of versions, in the order of the request.")


def needs(request: CompareRequest) -> Needs:
    return Needs((request.dataset,), tuple(one.wanted for one in request.versions))


def check(request: CompareRequest, known: JobContext) -> Checked:
    (sheet,) = known.datasets
    faults = [*_faults(request, known.models)]
    for version in known.models:
        name = _target(request, version) if Task(version.header.task).supervised else None
        faults += column_faults(version.header, name, sheet.columns, sheet.rows)
    if faults := list(dict.fromkeys(faults)):
        raise InvalidRequest(faults=faults)
    return Checked(algorithms=tuple(dict.fromkeys(version.header.algorithm for version in known.models)))


def run(request: CompareRequest, inputs: Inputs, progress: Reporter) -> Outcome:
    (source,), models = inputs.datasets, inputs.models
    stages, sheet = Stages(progress), source.sheet
    stages(0.0, "reading the table")
    versions = [loaded.version for loaded in models]
    task, name = Task(versions[0].header.task), _target(request, versions[0])
    every = request.rows == "all" or (request.rows is None and not task.supervised)
    columns = dict.fromkeys(column for one in versions for column in columns_of(one.header, name, sheet.digest))
    table = source.read(columns)
    found = [rows_of(loaded, sheet, table, name, everything=every) for loaded in models]
    rows = common_rows(found)
    if not rows.size:
        raise InvalidData(
            "Every row of this dataset was seen by the training of some version: none is left to compare them on. Set "
            "rows to all to compare them on training rows all the same."
        )
    evaluated = _evaluated(models, found, rows, request.seed, stages.within(0.1, 0.9, "evaluating the versions"))
    stages(0.9, "comparing pairs")
    groups = groups_of_training([version.header.receipt for version in versions], table, rows)
    draws = Resamples.of(rows.size, np.random.Generator(np.random.PCG64(request.seed)), groups)
    metric = (request.metric or metric_of(task, evaluated)) if task.supervised else None
    if metric is not None and not all(metric in one.row_values for one in evaluated):
        raise InvalidRequest(faults=[Fault("/metric", f"Not every version has {metric}. {NO_PROBABILITIES}")])
    pairs = agreements(evaluated, draws) if metric is None else differences(metric, evaluated, Rows(draws))
    result = CompareResult(
        kind="compare",
        dataset=UUID(str(request.dataset)),
        task=task,
        target=name,
        metric=metric,
        evidence=_evidence(rows.size, every=every, supervised=task.supervised),
        rows=rows.size,
        versions=[_compared(*one) for one in zip(versions, found, evaluated, strict=True)],
        pairs=[*pairs],
        reuse=common_reuse(found, rows, sheet.digest, name),
        warnings=[*_shared(versions, found, evaluated), *_notes(task, metric, models, chosen=request.metric is None)],
    )
    return Outcome(result=result)


def _evaluated(
    models: Sequence[Loaded], found: Sequence[VersionRows], rows: Labels, seed: int, progress: Progress
) -> list[EvaluatedModel]:
    parts = [reporter(part_of(progress, place, len(models))) for place in range(len(models))]
    return [
        evaluate_table(loaded.model, own.table, own.of(rows), NO_OPTIONS, seed, progress=part)
        for loaded, own, part in zip(models, found, parts, strict=True)
    ]


def _faults(request: CompareRequest, versions: Sequence[Version]) -> Iterator[Fault]:
    first = versions[0]
    for place, (one, version) in enumerate(zip(request.versions, versions, strict=True)):
        at, task = f"/versions/{place}", Task(version.header.task)
        yield from one.choice_faults(at)
        if not task.supervised and not task.labels:
            detail = "only versions that predict a target, and clusterings, can be compared."
            yield Fault(f"{at}/model", f"{_named(version)} does {task}: {detail}")
        elif _aim(version) != _aim(first):
            yield Fault(f"{at}/model", f"{_named(version)} does {_aim(version)}, {_named(first)} {_aim(first)}.")
        for fault in evaluation_faults(task, version.header.receipt, version.header.inputs):
            yield fault._replace(pointer=f"{at}{fault.pointer}")
    if request.target is not None and not Task(first.header.task).supervised:
        yield Fault("/target", "Clusterings predict no target: leave it out.")
    yield from _metric_faults(request.metric, Task(first.header.task))


def _metric_faults(metric: str | None, task: Task) -> Iterator[Fault]:
    if metric is not None and not task.supervised:
        yield Fault("/metric", "Clusterings agree or not, and have no difference of a metric: leave it out.")
    elif metric is not None and metric not in (usable := OF_NUMBERS if task.of_numbers else OF_CLASSES):
        yield Fault("/metric", f"Versions of a {task} are compared by {' or '.join(usable)}.")


def _named(version: Version) -> str:
    return f"{version.model} version {version.version}"


def _aim(version: Version) -> str:
    """The task, and the target if there is one."""
    target = truth_of(version.header)
    return version.header.task if target is None else f"{version.header.task} of {target!r}"


def _target(request: CompareRequest, version: Version) -> str | None:
    """The column of the truth."""
    return truth_of(version.header) if request.target is None else request.target


def _compared(version: Version, found: VersionRows, evaluated: EvaluatedModel) -> ComparedVersion:
    return ComparedVersion(
        model=version.model,
        version=version.version,
        digest=version.digest,
        algorithm=version.header.algorithm,
        training_rows=found.training_rows,
        metrics=evaluated.evaluation.metrics,
    )


def _evidence(rows: int, *, every: bool, supervised: bool) -> str:
    which = "of the dataset" if every else "of the dataset that the training of no version has seen"
    rest = f"The metrics of every version rest on the same {rows} rows {which}."
    return rest if supervised else f"{rest} {NO_TRUTH}"


def _shared(
    versions: Sequence[Version], found: Sequence[VersionRows], evaluated: Sequence[EvaluatedModel]
) -> Iterator[str]:
    """Warnings of the versions; one that is not of all of them names its versions."""
    names = dict[str, list[str]]()
    for version, own, one in zip(versions, found, evaluated, strict=True):
        for message in dict.fromkeys([*own.warnings, *warnings(one, seen=own.trained)]):
            names.setdefault(message, []).append(_named(version))
    for message, whose in names.items():
        yield message if len(whose) == len(versions) else f"{', '.join(dict.fromkeys(whose))}: {message}"


def _notes(task: Task, metric: str | None, models: Sequence[Loaded], *, chosen: bool) -> Iterator[str]:
    """chosen: whether the metric is not that of the request."""
    count = len(models) * (len(models) - 1) // 2
    if chosen and metric is not None and metric != task.record.measure:
        yield f"Pairs are compared by {metric}, not by {task.record.measure}. {NO_PROBABILITIES}"
    if metric is not None and count > 1:
        many = "are not corrected for their number: of pairs of equal versions, about 1 in 20 differs by chance."
        yield f"The {count} intervals {many}"
    if metric is None and len({_space(loaded) for loaded in models}) > 1:
        yield OWN_SPACES


def _space(loaded: Loaded) -> tuple[object, ...]:
    """The columns that the algorithm sees, with their scales; a version behind a projection has a space of its own."""
    preparation = loaded.model.preparation
    offsets, scales = preparation.scaling.units
    own = "" if preparation.restorable else loaded.version.digest
    return (own, *preparation.layout.names, offsets.tobytes(), scales.tobytes())


KIND = Kind(
    operation="compare_models",
    dry_run="validate_comparison",
    request=CompareRequest,
    result=CompareResult,
    needs=needs,
    check=check,
    run=run,
)
