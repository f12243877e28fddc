"""Combine models that exist into a committee, without fitting any of them again: a new version of a model.

Each member sees the columns as its own training prepared them, and predicts as it does alone. The committee is
evaluated on rows that none of its members was trained on.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from pydantic import Field

from app.base.errors import InvalidData, InvalidRequest
from app.base.faults import Fault
from app.base.references import DatasetReference
from app.ml.catalogue.algorithm_files import find
from app.ml.contract.algorithm import JSON, FittedLearner, Task
from app.ml.contract.columns import ColumnKind
from app.ml.contract.labels import Class
from app.ml.contract.model_reference import ModelRef, Name
from app.ml.contract.params import MinMargin, MinProbability, Voting
from app.ml.contract.progress import Reporter, Stages
from app.ml.evaluation.evaluation import FOR_REPORT
from app.ml.evaluation.holdout_reuse import held_out_by_all, whole, without
from app.ml.evaluation.report import Report, Reuse
from app.ml.evaluation.residuals import residuals
from app.ml.kinds.job import Checked, Inputs, JobContext, Kind, Loaded, Needs, Outcome, Request, Trained, Version
from app.ml.models import seen_rows
from app.ml.models.conformal import Calibration
from app.ml.models.golden import record_golden, spaced
from app.ml.models.header import Header
from app.ml.models.member_view import View, common
from app.ml.models.model import Model, encode
from app.ml.preparation.preparation import Preparation
from app.ml.tables.casting import kinds_used, kinds_wanted
from app.ml.training.reporting.receipt import libraries
from app.ml.training.reporting.reporting import readable
from app.ml.training.versions.table_evaluation import (
    EvaluatedModel,
    column_faults,
    evaluate_table,
    read_truth,
    split_columns,
    trainings,
    warnings,
)
from app.ml.training.versions.unseen_rows import NOT_KNOWN, unseen

COMMITTEE = "committee"
RULES = {"voting", "min_probability", "min_margin"}
"""Parameters of the committee that the request has too."""


class CombinedMember(ModelRef):
    """A version of a model."""

    weight: float = Field(1.0, gt=0, le=1e9, description="Weight of the member.")


class CombineRequest(Request):
    """Combine models that exist into a committee; nothing is fitted."""

    model: Name = Field(description="The model that gets a new version; made if it does not exist.")
    members: list[CombinedMember] = Field(
        min_length=1, max_length=50, description="Model versions that become members of the committee."
    )
    dataset: DatasetReference = Field(
        description="The id or the name of a dataset with the members' columns and their target. Its rows evaluate the "
        "committee, except those that a member was trained on. A name means the newest dataset of that name."
    )
    voting: Voting = "soft"
    min_probability: MinProbability = 0.0
    min_margin: MinMargin = 0.0
    seed: int = Field(0, ge=0, lt=2**63, description="Seed of the bootstrap intervals.")


def needs(request: CombineRequest) -> Needs:
    return Needs((request.dataset,), tuple(one.wanted for one in request.members))


def check(request: CombineRequest, known: JobContext) -> Checked:
    (sheet,) = known.datasets
    faults = [*_faults(request, known.models)]
    for version in known.models:
        faults += column_faults(version.header, version.header.target, sheet.columns, sheet.rows)
    if faults := list(dict.fromkeys(faults)):
        raise InvalidRequest(faults=faults)
    names = dict.fromkeys([COMMITTEE, *(version.header.algorithm for version in known.models)])
    return Checked(request.model, algorithms=tuple(names))


def run(request: CombineRequest, inputs: Inputs, progress: Reporter) -> Outcome:
    (source,) = inputs.datasets
    stages = Stages(progress)
    stages(0.0, "reading the table")
    versions, digest = [loaded.version for loaded in inputs.models], source.sheet.digest
    model = _committee(request, inputs.models, digest)
    header, name = versions[0].header, str(model.target)
    source = source.used_as(kinds_wanted(model, source.sheet.columns))
    seen = trainings(model.receipt, digest)
    inputs_and_truth = [*(column.name for column in model.inputs), name]
    table = source.read(dict.fromkeys([*inputs_and_truth, *split_columns(seen)]))
    target = read_truth(header, name, table)
    known = [part for loaded in inputs.models for part in loaded.seen or ()]
    chosen = unseen(seen, known, target, table, truth=name, digest=digest)
    complete = all(loaded.seen is not None for loaded in inputs.models)
    foreign = [loaded for loaded in inputs.models if not trainings(loaded.model.receipt, digest)]
    if not chosen.target.rows.size or (seen and not chosen.sealed and not complete):
        raise InvalidData("The members have learned from all rows of this dataset: none is left for the evaluation.")
    target = chosen.target
    evaluated = evaluate_table(model, table, target, FOR_REPORT, request.seed, progress=progress)
    stages(0.95, "writing the model")
    if model.task.of_numbers:
        model = replace(model, calibration=Calibration.of(evaluated.predicted, target.y))
    sample = table.select([column.name for column in model.inputs])
    sample = sample.take(pa.array(target.rows[spaced(np.arange(target.rows.size))]))
    left_out = int(chosen.found.seen.sum())
    reuse = (
        held_out_by_all(digest, name) if seen else without(digest, name, left_out) if left_out else whole(digest, name)
    )
    messages = [
        *seen_rows.warnings(chosen.found, left_out=True),
        *([NOT_KNOWN] if any(loaded.seen is None for loaded in foreign) else []),
    ]
    report = _report(request.seed, versions, model, evaluated, reuse=reuse, notes=messages)
    learned = seen_rows.encode(known) if complete else b""
    return Outcome(Trained(encode(model), report, record_golden(model, sample), learned))


def _faults(request: CombineRequest, versions: Sequence[Version]) -> Iterator[Fault]:
    first, kinds, given = versions[0], dict[str, str](), dict[str, str]()
    for place, (one, version) in enumerate(zip(request.members, versions, strict=True)):
        at, header = f"/members/{place}", version.header
        yield from one.choice_faults(at)
        if not Task(header.task).supervised:
            yield Fault(f"{at}/model", f"It does {header.task}: only what predicts a target can be combined.")
        elif (header.task, header.target) != (first.header.task, first.header.target):
            yield Fault(f"{at}/model", f"It predicts {_what(version)}, the first member {_what(first)}.")
        if header.target in {column.name for other in versions for column in other.header.inputs}:
            yield Fault(f"{at}/model", f"It predicts {header.target!r}, which another member takes as an input.")
        for column in header.inputs:
            if column.kind == ColumnKind.TEXT:
                detail = f"It learns from the text {column.name!r}, which no committee takes: combine other members."
                yield Fault(f"{at}/model", detail, "wrong_kind")
            if kinds.setdefault(column.name, column.kind) != column.kind:
                detail = f"It takes {column.name!r} as {column.kind}, another member as {kinds[column.name]}."
                yield Fault(f"{at}/model", detail, "wrong_kind")
        yield from _given_kind_faults(at, header, given)


def _given_kind_faults(at: str, header: Header, given: dict[str, str]) -> Iterator[Fault]:
    """Columns for which another member's training gave another kind. given: by the members before."""
    used, columns = kinds_used(header.receipt), {*(column.name for column in header.inputs), header.target}
    for name, kind in used.items():
        if name in columns and given.setdefault(name, kind) != kind:
            detail = f"Its training reads {name!r} as {kind}, that of another member as {given[name]}: combine members"
            yield Fault(f"{at}/model", f"{detail} of one kind.", "wrong_kind")


def _what(version: Version) -> str:
    return f"{version.header.target!r} ({version.header.task})"


def _committee(request: CombineRequest, members: Sequence[Loaded], digest: str) -> Model:
    """Not evaluated yet."""
    models = [loaded.model for loaded in members]
    team = common([model.inputs for model in models])
    classes: tuple[Class, ...] = tuple(dict.fromkeys(label for model in models for label in model.classes or ()))
    learned = [_learned(model, team, classes) for model in models]
    algorithm = find(COMMITTEE).algorithm
    counts = [one.weight for one in request.members]
    given = {"estimators": [one.params.model_dump() for one in learned], "estimator_weights": counts}
    params = algorithm.params.model_validate(given | request.model_dump(include=RULES))
    weights = np.array(counts)
    return Model(
        name=COMMITTEE,
        task=models[0].task,
        params=params,
        state=algorithm.state(tuple(learned), weights / weights.sum(), None, np.full(len(learned), np.nan)),
        preparation=team,
        target=models[0].target,
        classes=classes or None,
        receipt=_receipt(request, members, digest),
        limits=(min(model.limits[0] for model in models), max(model.limits[1] for model in models)),
    )


def _learned(model: Model, team: Preparation, classes: tuple[Class, ...]) -> FittedLearner:
    own = np.array([classes.index(label) for label in model.classes or ()], np.intp)
    view = View.of(model.preparation, model.linearising, team, own, len(classes), calibrators=model.calibrators)
    return FittedLearner(model.algorithm, find(model.name).learner(model.params), model.state, view)


def _receipt(request: CombineRequest, members: Sequence[Loaded], digest: str) -> dict[str, JSON]:
    """data_digest: of the rows that evaluate it."""
    result = [
        {
            "model": loaded.version.model,
            "version": loaded.version.version,
            "digest": loaded.version.digest,
            "receipt": dict(loaded.model.receipt),
        }
        for loaded in members
    ]
    requested = request.model_dump(mode="json", include=RULES)
    weights = [one.weight for one in request.members]
    return {
        "seed": request.seed,
        "data_digest": digest,
        "members": result,
        "combined": requested | {"estimator_weights": weights},
        "libraries": libraries(),
    }


def _report(
    seed: int,
    versions: Sequence[Version],
    model: Model,
    evaluated: EvaluatedModel,
    *,
    reuse: Reuse,
    notes: Sequence[str],
) -> Report:
    evaluation, summary = evaluated.evaluation, find(COMMITTEE).algorithm.summary
    left = residuals("test", evaluated.rows, evaluation.residuals)
    offsets, scales = model.preparation.scaling.units
    result = summary(model.params, model.state) if summary else []
    return Report(
        task=model.task,
        evidence=f"{evaluated.rows.size} rows that no member has learned from; the members were there before.",
        rows_train=0,
        rows_test=evaluated.rows.size,
        seed=seed,
        test=evaluation.metrics,
        train=[],
        confusion_matrix=evaluation.confusion_matrix,
        rejection=evaluation.rejection,
        reliability=evaluation.reliability,
        reuse=reuse,
        residuals=[left] if left else [],
        curves=evaluation.curves,
        converged=True,
        iterations=len(versions),
        columns=list(model.preparation.layout.names),
        offsets=offsets.tolist(),
        scales=scales.tolist(),
        summary=readable(
            [one | {"model": v.model, "version": v.version} for one, v in zip(result, versions, strict=True)],
            model.preparation,
            model.classes or (),
        ),
        warnings=[*notes, *warnings(evaluated, seen=False)],
    )


KIND = Kind(
    operation="combine_models",
    dry_run="validate_combination",
    request=CombineRequest,
    needs=needs,
    check=check,
    run=run,
)
