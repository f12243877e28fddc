"""Evaluate a model on a dataset: every metric with its confidence interval, and the rows behind each mistake.

Rows that training has seen are left out, unless the request is for all: of the model's own dataset those that were
not held out, of any other those that equal a training row in all columns used.
"""

from collections.abc import Iterator
from typing import Literal
from uuid import UUID

from pydantic import Field

from app.base.errors import InvalidData, InvalidRequest
from app.base.faults import Fault
from app.base.references import DatasetReference
from app.ml.contract.algorithm import Task
from app.ml.contract.model_reference import ModelRef
from app.ml.contract.progress import Reporter
from app.ml.evaluation.costs import Costs, cost_faults
from app.ml.evaluation.evaluation import EXAMPLES, ClassOptions, EvaluationReport
from app.ml.evaluation.report import IntervalReport
from app.ml.kinds.job import Checked, Inputs, JobContext, Kind, Needs, Outcome, Request, Result, Sheet, Version
from app.ml.models import seen_rows
from app.ml.models.header import Header
from app.ml.preparation.target import read_classes
from app.ml.tables.casting import kinds_wanted, recast_columns
from app.ml.training.planning.reference_classes import compared_with, reference_faults
from app.ml.training.planning.relation_faults import evaluation_faults
from app.ml.training.versions.calibration_roles import Roles
from app.ml.training.versions.table_evaluation import (
    column_faults,
    evaluate_table,
    read_truth,
    split_columns,
    trainings,
    warnings,
)
from app.ml.training.versions.unseen_rows import NOT_KNOWN, Unseen, reuse_of, unseen


class EvaluateRequest(ModelRef, Request):
    """Evaluate a version of a model on the rows of a dataset."""

    dataset: DatasetReference = Field(
        description="A dataset that has the model's columns: its id, or its name, which means the newest of that name."
    )
    target: str | None = Field(
        None,
        description="Column of the truth, or for a clustering of classes that the clusters are compared with. Null: "
        "the target of the model's training; a clustering is compared with no classes.",
    )
    rows: Literal["all", "held_out"] | None = Field(
        None,
        description="Rows to use. Null: those that training has not seen: of the dataset that the model was trained "
        "on, the rows held out; of another, all rows but those that equal a training row in all columns used. all: "
        "every row. held_out: the rows held out of the dataset that the model was trained on.",
    )
    costs: Costs | None = Field(
        None, description="Cost matrix; adds the costs of the cheapest classes. Null: no costs."
    )
    threshold: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Smallest probability of the second of two classes with which it is predicted; null: the most "
        "probable class is predicted.",
    )
    examples: int = Field(EXAMPLES, ge=0, le=1000, description="Rows named in every cell of the confusion matrix.")
    seed: int = Field(0, ge=0, lt=2**63, description="Seed of the bootstrap intervals.")


class EvaluateResult(EvaluationReport, Result):
    """Evaluation of a version on the rows of a dataset."""

    kind: Literal["evaluate"] = Field(description="Kind of the job; it identifies the variant of this schema.")
    model: str = Field(description="Name of the model.")
    version: int = Field(description="Version of the model, counted from 1.")
    digest: str = Field(description="sha256: of the version's bytes.")
    dataset: UUID = Field(description="Id of the dataset whose rows were evaluated.")
    evidence: str = Field(description="Evidence behind the metrics: one sentence that names the rows.")
    intervals: IntervalReport | None = Field(
        None,
        description="Coverage of 95 % prediction intervals on these rows. Null: no regression, or no interval of new "
        "targets.",
    )


def needs(request: EvaluateRequest) -> Needs:
    return Needs((request.dataset,), (request.wanted,))


def check(request: EvaluateRequest, known: JobContext) -> Checked:
    (sheet,), (version,) = known.datasets, known.models
    faults = list(_faults(request, version, sheet))
    if faults:
        raise InvalidRequest(faults=faults)
    return Checked(request.model, algorithms=(version.header.algorithm,))


def run(request: EvaluateRequest, inputs: Inputs, progress: Reporter) -> Outcome:
    (source,), (loaded,) = inputs.datasets, inputs.models
    version, digest = loaded.version, source.sheet.digest
    source = source.used_as(kinds_wanted(version.header, source.sheet.columns))
    name, compared = _target(request, version), _compared(request, version)
    more = [one for one in (name, compared) if one is not None]
    own = trainings(version.header.receipt, digest)
    group = Roles.of(version.header.receipt).within({column.name for column in source.sheet.columns}).group
    read = [*(one.name for one in version.header.inputs), *more, *split_columns(own), *([group] if group else [])]
    table = source.read(dict.fromkeys(read))
    target, every = read_truth(version.header, name, table), request.rows == "all"
    learned = own if name == _truth_of(version.header) else []
    chosen = unseen(learned, loaded.seen or (), target, table, truth=name, digest=digest, everything=every)
    left_out = 0 if every else int(chosen.found.seen.sum())
    new = chosen.sealed or (not every and bool(learned) and loaded.seen is not None)
    if not chosen.target.rows.size or (request.rows == "held_out" and not new):
        raise InvalidData(_nothing_left(chosen))
    requested = ClassOptions(request.examples, None, request.costs, request.threshold)
    reference = None if compared is None else read_classes(table.column(compared), compared).codes
    evaluated = evaluate_table(
        loaded.model, table, chosen.target, requested, request.seed, progress=progress, reference=reference
    )
    messages = [] if own and not new else [*seen_rows.warnings(chosen.found, left_out=not every)]
    if loaded.seen is None and not own:
        messages.append(NOT_KNOWN)
    result = EvaluateResult(
        kind="evaluate",
        model=version.model,
        version=version.version,
        digest=version.digest,
        dataset=UUID(str(request.dataset)),
        task=version.header.task,
        evidence=f"The metrics rest on {evaluated.rows.size} rows {_whose(chosen, left_out)}."
        + compared_with(compared, reference if reference is None else reference[evaluated.rows]),
        rows=evaluated.rows.size,
        **evaluated.evaluation.as_fields(evaluated.rows),
        intervals=evaluated.intervals,
        reuse=reuse_of(version.header.receipt, digest, name, chosen, left_out) if new or not own else None,
        warnings=[*messages, *warnings(evaluated, seen=bool(own) and not new)],
    )
    return Outcome(result=result)


def _faults(request: EvaluateRequest, version: Version, sheet: Sheet) -> Iterator[Fault]:
    header, name = version.header, _target(request, version)
    yield from request.choice_faults()
    yield from evaluation_faults(Task(header.task), header.receipt, header.inputs)
    if request.rows == "held_out" and not trainings(version.header.receipt, sheet.digest):
        yield Fault("/rows", "The model has not learned from this dataset: it holds out none of its rows.")
    if request.rows == "held_out" and name != _truth_of(header):
        yield Fault("/target", "The training held out rows for its own target only.")
    compared = _compared(request, version)
    if request.target is not None and compared is None and _truth_of(header) is None:
        yield Fault("/target", "This model predicts no target: leave it out.")
    yield from column_faults(header, name if _truth_of(header) else None, sheet.columns, sheet.rows)
    used = recast_columns(sheet.columns, kinds_wanted(header, sheet.columns))
    yield from reference_faults(compared, Task(header.task), {column.name: column for column in used})
    if request.threshold is not None and len(header.classes or ()) != 2:
        yield Fault("/threshold", "It decides between two classes.")
    if request.costs is not None and not Task(header.task).of_classes:
        yield Fault("/costs", "Only decisions between classes have costs.")
    elif request.costs is not None:
        yield from cost_faults(request.costs, header.classes or (), "/costs")


def _target(request: EvaluateRequest, version: Version) -> str | None:
    named = None if _compared(request, version) else request.target
    return _truth_of(version.header) if named is None else named


def _compared(request: EvaluateRequest, version: Version) -> str | None:
    """The column of classes that clusters are compared with."""
    return request.target if Task(version.header.task).record.compared else None


def _truth_of(header: Header) -> str | None:
    """The column that its predictions are of; None where they are of no column."""
    return header.target if Task(header.task).supervised else None


def _whose(chosen: Unseen, left_out: int) -> str:
    if chosen.sealed:
        return "that the model's training held out"
    return "of the dataset that the model's training has not seen" if left_out else "of the dataset"


def _nothing_left(chosen: Unseen) -> str:
    if chosen.sealed or not chosen.found.seen.any():
        return "The model's training held out no row of this dataset. Set rows to all to evaluate its training rows."
    return (
        f"All {chosen.found.seen.size} rows with a truth equal training rows of the model: none is left to "
        "evaluate. Set rows to all to evaluate them all the same."
    )


KIND = Kind(
    operation="evaluate_model",
    dry_run="validate_evaluation",
    request=EvaluateRequest,
    result=EvaluateResult,
    needs=needs,
    check=check,
    run=run,
)
