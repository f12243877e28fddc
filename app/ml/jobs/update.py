"""Feed one more batch to a version whose algorithm learns batch by batch: a new version of the same model.

The new version has the columns, classes, categories and scales of the version that it continues, and learns every row
with a target once, in the order of the dataset. These rows first evaluate the version before it has learned them
(progressive validation), but for rows that it was trained on.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
from pydantic import Field

from app.base.errors import InvalidRequest
from app.base.references import DatasetReference
from app.ml.contract.algorithm import JSON
from app.ml.contract.model_reference import ModelRef
from app.ml.contract.progress import Reporter, Stages, reporter
from app.ml.evaluation.evaluation import FOR_REPORT, NO_OPTIONS, Evaluation
from app.ml.evaluation.report import Report, Reuse
from app.ml.evaluation.residuals import residuals
from app.ml.evaluation.train_test_gaps import gaps
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
    Trained,
)
from app.ml.models import seen_rows
from app.ml.models.golden import record_golden, spaced
from app.ml.models.model import Model, encode
from app.ml.models.seen_rows import SeenRows
from app.ml.preparation.row_hashes import row_hashes
from app.ml.preparation.target import Target
from app.ml.statistics.metric_value import Metric
from app.ml.tables.casting import kinds_wanted, recast_columns, training_of
from app.ml.training.reporting.receipt import libraries
from app.ml.training.reporting.reporting import monitor_curves, summary_of, unscaled_summary
from app.ml.training.versions.calibration_roles import Roles
from app.ml.training.versions.table_evaluation import (
    EvaluatedModel,
    evaluate_table,
    only,
    split_columns,
    trainings,
    warnings,
)
from app.ml.training.versions.unseen_rows import NOT_KNOWN, Unseen, reuse_of, unseen
from app.ml.training.versions.update_batch import FedBatch, batch_faults, feed, model_faults, read_batch

BEFORE, FED, AFTER = 0.4, 0.6, 0.95
"""Shares of a job that are complete after each of these stages."""
DROPPED = (
    "The prediction intervals of the version before rest on errors that it made: they do not hold for this version, "
    "which has none. Train a new version for intervals."
)
RAW = (
    "The calibrators of the version before fit its own probabilities: those of this version are "
    "not calibrated. Calibrate it on rows that it has not learned."
)
LEARNED_ALL = "The model was trained on all rows of the batch: none evaluated it before it was learned."


class UpdateRequest(ModelRef, Request):
    """Feed one more batch to a version of a model."""

    dataset: DatasetReference = Field(
        description="The id or the name of a dataset with the columns and the target of the model: the rows of the "
        "batch. A name means the newest dataset of that name."
    )
    ignored_columns: list[str] = Field(
        [],
        max_length=10_000,
        description="Columns of the dataset that the model does not know, and that are left out. Other unknown columns "
        "are refused, unless the training named its features.",
    )
    seed: int = Field(0, ge=0, lt=2**63, description="Seed of the bootstrap intervals.")


class UpdateResult(Result):
    """Metrics of a batch before and after it was learned."""

    kind: Literal["update"] = Field(description="Kind of the job; it identifies the variant of this schema.")
    model: str = Field(description="Name of the model.")
    base_version: int = Field(description="Version that learned the batch, counted from 1.")
    base_digest: str = Field(description="sha256: of the bytes of this version.")
    rows: int = Field(description="Number of rows of the batch that were learned.")
    rows_before: int = Field(description="Number of these rows that the base version was not trained on.")
    before: list[Metric] = Field(
        description="Metrics of the base version on rows that it was not trained on, each with its confidence "
        "interval; empty without such rows."
    )
    after: list[Metric] = Field(
        description="Metrics of the new version on all rows of the batch, which promise nothing for new rows."
    )


class _Measured(NamedTuple):
    """A batch before and after it was learned."""

    fed: FedBatch
    chosen: Unseen
    before: EvaluatedModel | None
    after: EvaluatedModel
    reuse: Reuse | None


def needs(request: UpdateRequest) -> Needs:
    return Needs((request.dataset,), (request.wanted,))


def check(request: UpdateRequest, known: JobContext) -> Checked:
    (sheet,), (version,) = known.datasets, known.models
    faults = [*request.choice_faults(), *model_faults(version.header)]
    if not faults:
        ignored, memory = request.ignored_columns, known.memory_bytes
        faults += batch_faults(version.header, sheet.columns, sheet.rows, ignored, memory)
    if faults:
        raise InvalidRequest(faults=faults)
    return Checked(request.model, algorithms=(version.header.algorithm,))


def run(request: UpdateRequest, inputs: Inputs, progress: Reporter) -> Outcome:
    (source,), (loaded,) = inputs.datasets, inputs.models
    version, model, digest = loaded.version, loaded.model, source.sheet.digest
    stages, header = Stages(progress), loaded.version.header
    stages(0.0, "reading the table")
    kinds, spec = kinds_wanted(header, source.sheet.columns), training_of(header.receipt)["spec"]
    roles = [name for role in ("weights", "sigma") if (name := spec.get(role)) is not None]
    group = Roles.of(header.receipt).within({column.name for column in source.sheet.columns}).group
    roles += [group] if group else []
    split = split_columns(trainings(header.receipt, digest))
    names = dict.fromkeys([*(column.name for column in model.inputs), str(model.target), *roles, *split])
    table = source.used_as(kinds).read(names)
    batch = read_batch(header, recast_columns(source.sheet.columns, kinds), table)
    chosen, reuse = _unseen(loaded, batch.target, table, digest)
    before = None
    if chosen.target.rows.size:
        received = stages.within(0.0, BEFORE, "evaluating the version before")
        before = evaluate_table(model, table, chosen.target, FOR_REPORT, request.seed, progress=reporter(received))
    stages(BEFORE, "learning the batch")
    fed = feed(model, batch, request.seed, _receipt(request, loaded, digest))
    received = stages.within(FED, AFTER, "evaluating")
    after = evaluate_table(fed.model, table, batch.target, NO_OPTIONS, request.seed, progress=reporter(received))
    stages(AFTER, "writing the model")
    measured = _Measured(fed, chosen, before, after, reuse)
    report = _report(request.seed, loaded, measured, table)
    result = UpdateResult(
        kind="update",
        model=version.model,
        base_version=version.version,
        base_digest=version.digest,
        rows=batch.rows,
        rows_before=chosen.target.rows.size,
        before=report.test,
        after=report.train,
    )
    inputs_of = [column.name for column in model.inputs]
    shown = table.select(inputs_of).take(pa.array(batch.target.rows[spaced(np.arange(batch.rows))]))
    hashes = row_hashes(table.take(pa.array(batch.target.rows)), inputs_of, model.target)
    parts = None if loaded.seen is None else [*loaded.seen, SeenRows.of(hashes, digest, inputs_of, model.target)]
    golden = record_golden(fed.model, shown)
    return Outcome(Trained(encode(fed.model), report, golden, seen_rows.encode(parts or [])), result)


def _unseen(loaded: Loaded, target: Target, table: pa.Table, digest: str) -> tuple[Unseen, Reuse | None]:
    """The rows that the version before has not learned, and how they are counted; none where that is not known."""
    receipt, name = loaded.version.header.receipt, loaded.version.header.target
    own = trainings(receipt, digest)
    chosen = unseen(own, loaded.seen or (), target, table, truth=name, digest=digest)
    if own and loaded.seen is None and not chosen.sealed:
        chosen = chosen._replace(target=only(target, np.zeros(0, np.intp)))
    if not chosen.target.rows.size:
        return chosen, None
    return chosen, reuse_of(receipt, digest, name, chosen, int(chosen.found.seen.sum()))


def _receipt(request: UpdateRequest, loaded: Loaded, digest: str) -> dict[str, JSON]:
    """data_digest: of the batch. batches: of all that were fed since the training, in their order."""
    before, version = loaded.version.header.receipt, loaded.version
    base = {"model": version.model, "version": version.version, "digest": version.digest}
    unusual = {name: before[name] for name in ("reading", "projection") if name in before}
    return unusual | {
        "seed": request.seed,
        "data_digest": digest,
        "base": base | {"data_digest": before["data_digest"]},
        "training": dict(training_of(before)),
        "batches": [*before.get("batches", []), digest],
        "libraries": libraries(),
    }


def _report(seed: int, loaded: Loaded, measured: _Measured, table: pa.Table) -> Report:
    """Test metrics are those before the batch was learned, training metrics those after."""
    fed, before, after = measured.fed, measured.before, measured.after
    model, fit = fed.model, fed.fit
    tested = Evaluation([]) if before is None else before.evaluation
    places = np.zeros(0, np.intp) if before is None else before.rows
    looked_at = [
        residuals("train", after.rows, after.evaluation.residuals),
        residuals("test", places, tested.residuals),
    ]
    listed = model.preparation.listed
    offsets, scales = listed.scaling.units
    return Report(
        task=model.task,
        evidence=_evidence(loaded, measured),
        rows_train=fed.rows.rows,
        rows_test=places.size,
        seed=seed,
        test=tested.metrics,
        train=after.evaluation.metrics,
        gaps=gaps(after.evaluation.metrics, tested.metrics),
        confusion_matrix=tested.confusion_matrix,
        rejection=tested.rejection,
        reliability=tested.reliability,
        reuse=measured.reuse,
        residuals=[part for part in looked_at if part is not None],
        curves=[*monitor_curves(fit.curves), *tested.curves],
        converged=bool(fit.converged),
        iterations=int(fit.iterations),
        columns=list(listed.layout.names),
        offsets=offsets.tolist(),
        scales=scales.tolist(),
        summary=summary_of(model.algorithm, model.params, model.state, model.preparation, model.classes or ()),
        unscaled=unscaled_summary(fed.rows, fit, model.preparation),
        warnings=[*_warnings(loaded, measured, table)],
    )


def _evidence(loaded: Loaded, measured: _Measured) -> str:
    version, rows = loaded.version.version, measured.fed.rows.rows
    learned = f"Version {version} learned {rows} more rows, once each, in the order of the dataset."
    if measured.before is None:
        return f"{learned} {LEARNED_ALL}"
    tested = measured.before.rows.size
    which = "these rows" if tested == rows else f"the {tested} of these rows that it was not trained on"
    return f"{learned} The test metrics are those of version {version} on {which}, before it learned them."


def _warnings(loaded: Loaded, measured: _Measured, table: pa.Table) -> Iterator[str]:
    fed, before, model = measured.fed, measured.before, loaded.model
    if model.calibration.scores.size:
        yield DROPPED
    if loaded.model.calibrators:
        yield RAW
    if lacking := table.num_rows - fed.rows.rows:
        yield f"{lacking} rows of the dataset have no target and were not learned."
    yield from seen_rows.warnings(measured.chosen.found, left_out=True)
    if before is None:
        yield LEARNED_ALL
    else:
        yield from warnings(before, seen=False)
    if loaded.seen is None:
        yield NOT_KNOWN
    yield from _unusual(model, table.take(pa.array(fed.rows.target.rows)))
    yield from fed.fit.warnings


def _unusual(model: Model, table: pa.Table) -> Iterator[str]:
    """Values of learned rows that the preparation has not seen."""
    flags, _ = model.preparation.prepared(model.preparation.raw(table))
    for flag in flags:
        if flag.code == "unseen_category":
            yield f"{flag.rows.size} rows have categories in {flag.column!r} that the model does not know."
        elif flag.code == "missing_category":
            yield f"{flag.rows.size} rows lack a category in {flag.column!r}, as no training row did."
        elif flag.code == "outside_range":
            yield f"{flag.rows.size} rows have values in {flag.column!r} outside of the range of the training."


KIND = Kind(
    operation="update_model",
    dry_run="validate_update",
    request=UpdateRequest,
    result=UpdateResult,
    needs=needs,
    check=check,
    run=run,
)
