"""Judge a model on a dataset: every figure of its task with error bars, and the rows behind each mistake.

On the dataset that the model has learned from, only the rows that its training held out are judged, unless all are
asked for.
"""

from collections.abc import Iterator
from typing import Literal
from uuid import UUID

from pydantic import Field

from app.errors import Fault, InvalidData, InvalidRequest
from app.ml.contract import Task
from app.ml.costs import Costs, cost_faults
from app.ml.evaluation import Asked, Judgement
from app.ml.judgement import column_faults, group_columns, judge, only, read_truth, sealed_rows, trainings, warnings
from app.ml.kind import Checked, Chosen, Inputs, Kind, Known, Needs, Outcome, Request, Result, Sheet, Version
from app.ml.progress import Reporter
from app.ml.report import Reuse
from app.ml.reuse import held_out, held_out_by_all, whole
from app.references import DatasetReference


class EvaluateRequest(Chosen, Request):
    """Judge a version of a model on the rows of a dataset."""

    dataset: DatasetReference = Field(
        description="A dataset that has the model's columns: its id, or its name, which means the newest of that name."
    )
    target: str | None = Field(None, description="The column of the truth; absent: as in the model's training.")
    rows: Literal["all", "held_out"] | None = Field(
        None, description="Absent: those held out, if the model learned from this very dataset; else all."
    )
    costs: Costs | None = Field(None, description="What decisions cost: adds the cheapest ones.")
    threshold: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Of two classes: the second is assigned above this probability. Absent: the most probable.",
    )
    examples: int = Field(20, ge=0, le=1000, description="Rows named in every cell of the confusion matrix.")
    seed: int = Field(0, ge=0, lt=2**63, description="Of the bootstrap.")


class EvaluateResult(Judgement, Result):
    """What the rows of a dataset say of a version."""

    kind: Literal["evaluate"]
    model: str
    version: int
    digest: str = Field(description="sha256: of the version's bytes.")
    dataset: UUID
    rests_on: str = Field(description="One sentence: which rows.")


def needs(request: EvaluateRequest) -> Needs:
    return Needs((request.dataset,), (request.wanted,))


def check(request: EvaluateRequest, known: Known) -> Checked:
    (sheet,), (version,) = known.datasets, known.models
    faults = list(_faults(request, version, sheet))
    if faults:
        raise InvalidRequest(faults=faults)
    return Checked(request.model, algorithms=(version.header.algorithm,))


def run(request: EvaluateRequest, inputs: Inputs, progress: Reporter) -> Outcome:
    (source,), (loaded,) = inputs.datasets, inputs.models
    version, digest = loaded.version, source.sheet.digest
    name = _target(request, version)
    inputs_and_truth = [column.name for column in version.header.inputs] + ([] if name is None else [name])
    own = trainings(version.header.receipt, digest)
    table = source.read(dict.fromkeys([*inputs_and_truth, *group_columns(own)]))
    target = read_truth(version.header, name, table)
    asked_for = bool(own) and request.rows != "all" and name == version.header.target
    sealed = sealed_rows(own, target, table) if asked_for else None
    if sealed is not None:
        target = only(target, sealed)
    if not target.rows.size or (sealed is None and request.rows == "held_out"):
        raise InvalidData("The model's training held out no row of this dataset.")
    asked = Asked(request.examples, None, request.costs, request.threshold)
    judged = judge(loaded.model, table, target, asked, request.seed, progress=progress)
    whose = "that the model's training held out" if sealed is not None else "of the dataset"
    result = EvaluateResult(
        kind="evaluate",
        model=version.model,
        version=version.version,
        digest=version.digest,
        dataset=UUID(str(request.dataset)),
        task=version.header.task,
        rests_on=f"The figures rest on {judged.rows.size} rows {whose}.",
        rows=judged.rows.size,
        **judged.evaluation.judgement(judged.rows),
        reuse=_reuse(version, digest, name, sealed=sealed is not None) if sealed is not None or not own else None,
        warnings=list(warnings(judged, seen=bool(own) and sealed is None)),
    )
    return Outcome(result=result)


def _faults(request: EvaluateRequest, version: Version, sheet: Sheet) -> Iterator[Fault]:
    header, name = version.header, _target(request, version)
    yield from request.choice_faults()
    if request.rows == "held_out" and not trainings(version.header.receipt, sheet.digest):
        yield Fault("/rows", "The model has not learned from this dataset: it holds out none of its rows.")
    if request.rows == "held_out" and name != header.target:
        yield Fault("/target", "The training held out rows for its own target only.")
    if request.target is not None and header.target is None:
        yield Fault("/target", "This model predicts no target: leave it out.")
    yield from column_faults(header, name if header.target else None, sheet.columns, sheet.rows)
    if request.threshold is not None and len(header.classes or ()) != 2:
        yield Fault("/threshold", "It decides between two classes.")
    if request.costs is not None and header.task != Task.CLASSIFICATION:
        yield Fault("/costs", "Only decisions between classes have costs.")
    elif request.costs is not None:
        yield from cost_faults(request.costs, header.classes or (), "/costs")


def _target(request: EvaluateRequest, version: Version) -> str | None:
    return version.header.target if request.target is None else request.target


def _reuse(version: Version, digest: str, name: str | None, *, sealed: bool) -> Reuse:
    if not sealed:
        return whole(digest, name)
    receipt = version.header.receipt
    if "members" in receipt:
        return held_out_by_all(digest, name)
    return held_out(digest, name, receipt["spec"]["validation"], receipt["seed"])


KIND = Kind(
    operation="evaluate_model",
    dry_run="validate_evaluation",
    request=EvaluateRequest,
    result=EvaluateResult,
    needs=needs,
    check=check,
    run=run,
)
