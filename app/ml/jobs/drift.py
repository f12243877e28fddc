"""Compare the rows of a dataset with those a model was trained on, or with another dataset.

Each column is compared by the population stability index of its binned values, with a p-value that holds in tables of
any size, corrected by Holm for the number of columns. With a model, its predictions are compared too, columns are
ranked by how far their drift changes predictions, and metrics of both tables stand side by side where both have the
target.
"""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple
from uuid import UUID

import numpy as np
import pyarrow as pa
from pydantic import Field

from app.base.errors import InvalidData, InvalidRequest
from app.base.faults import Fault
from app.base.references import DatasetReference
from app.base.wire import Wire
from app.ml.contract.algorithm import Task
from app.ml.contract.column_names import no_column
from app.ml.contract.columns import ColumnKind, TableColumn
from app.ml.contract.model_reference import ModelRef
from app.ml.contract.progress import Reporter, Stages
from app.ml.evaluation.evaluation import NO_OPTIONS
from app.ml.kinds.job import Checked, Inputs, JobContext, Kind, Loaded, Needs, Outcome, Request, Result, Sheet, Source
from app.ml.models.header import Header
from app.ml.models.model import Model
from app.ml.monitoring.column_bins import COMPARED_KINDS, count_cells
from app.ml.monitoring.comparison import ColumnDrift, Compared, Limits, compared_parts, drift_of
from app.ml.monitoring.reference import Reference, prediction_counts, prediction_reference, table_reference
from app.ml.monitoring.restored_columns import prediction_changes
from app.ml.statistics.metric_value import Metric
from app.ml.statistics.population_stability import TOLERANCE
from app.ml.tables.casting import TEXTS, kinds_wanted
from app.ml.training.versions.table_evaluation import column_faults, evaluate_table, read_truth

NO_REFERENCE = (
    "The version has no stored reference, as those that were imported, updated or made by an earlier release: give the "
    "dataset of its training rows as the reference."
)


class DriftRequest(Request):
    """Compare the rows of a dataset with those of a reference."""

    reference: DatasetReference | None = Field(
        None,
        description="Dataset of the reference rows: its id, or its name, which means the newest of that name. Null: "
        "the rows that the version in `model` was trained on, whose distributions are stored with it.",
    )
    current: DatasetReference = Field(
        description="Dataset that is compared with the reference: its id, or its name, which means the newest of that "
        "name."
    )
    model: ModelRef | None = Field(
        None,
        description="Version of a model, whose inputs and predictions are compared. Null: all columns that both "
        "datasets have are compared.",
    )
    columns: list[str] | None = Field(
        None,
        min_length=1,
        max_length=10_000,
        description="Columns to compare. Null: the inputs of the model, else all columns that both datasets have.",
    )
    tolerance_psi: float = Field(
        TOLERANCE,
        ge=0,
        le=1,
        description="Population stability index up to which a shift does not matter: a smaller one never counts as "
        "drift, however many rows there are.",
    )
    significance: float = Field(
        0.05,
        gt=0,
        lt=1,
        description="Probability of any false alarm among all columns, if no true index exceeds the tolerance.",
    )
    seed: int = Field(0, ge=0, lt=2**63, description="Seed of draws and of bootstrap intervals.")


class MetricPair(Wire):
    """A metric of the model on the reference rows and on the current rows."""

    name: str = Field(description="Name of the metric.")
    label: str | None = Field(None, description="Class of the metric; null: it is of all classes or of none.")
    reference: Metric | None = Field(None, description="Metric on the reference rows; null: it has none there.")
    current: Metric = Field(description="Metric on the current rows.")


class DriftResult(Result):
    """Drift of a dataset from a reference."""

    kind: Literal["drift"] = Field(description="Kind of the job; it identifies the variant of this schema.")
    reference: UUID | None = Field(
        None, description="Id of the dataset of the reference rows; null: the rows that the model was trained on."
    )
    current: UUID = Field(description="Id of the dataset that is compared.")
    model: str | None = Field(None, description="Name of the model; null: none was given.")
    version: int | None = Field(None, description="Version of the model; null: none was given.")
    reference_rows: int = Field(description="Number of reference rows.")
    current_rows: int = Field(description="Number of current rows.")
    tolerance_psi: float = Field(description="Population stability index up to which a shift does not matter.")
    significance: float = Field(description="Probability of any false alarm among all columns.")
    drifted: int = Field(description="Number of distributions that have drifted.")
    columns: list[ColumnDrift] = Field(
        description="Drift of each distribution: first those that have drifted, by how far they change predictions "
        "where that is known, then by the index."
    )
    quality: list[MetricPair] | None = Field(
        None,
        description="Metrics of the model on both sets of rows. Null: no model, or the current rows lack the target.",
    )


def needs(request: DriftRequest) -> Needs:
    datasets = (request.current,) if request.reference is None else (request.current, request.reference)
    return Needs(datasets, () if request.model is None else (request.model.wanted,))


def check(request: DriftRequest, context: JobContext) -> Checked:
    faults = list(_faults(request, context))
    if faults:
        raise InvalidRequest(faults=faults)
    if request.model is None:
        return Checked()
    (version,) = context.models
    return Checked(request.model.model, algorithms=(version.header.algorithm,))


def _faults(request: DriftRequest, context: JobContext) -> Iterator[Fault]:
    current, *others = context.datasets
    if request.model is not None:
        yield from request.model.choice_faults("/model")
    elif request.reference is None:
        yield Fault("/reference", "Give a dataset as the reference, or a model whose training rows are it.", "missing")
    compared = [current, *others]
    for sheet, pointer in zip(compared, ("/current", "/reference"), strict=False):
        if context.models:
            faults = column_faults(context.models[0].header, None, sheet.columns, sheet.rows)
            yield from (fault._replace(pointer=pointer) for fault in faults)
        elif request.columns is not None:
            names = [column.name for column in sheet.columns]
            yield from _unknown_columns(request.columns, names)
        if not sheet.rows:
            yield Fault(pointer, "The dataset has no rows.")
    if context.models and request.columns is not None:
        yield from _unknown_columns(request.columns, [column.name for column in context.models[0].header.inputs])
    if not context.models and others and not _shared_columns(current.columns, others[0].columns):
        yield Fault("/current", "It has no column of the reference that can be compared: none of the same kind.")


def _unknown_columns(wanted: Sequence[str], names: Sequence[str]) -> Iterator[Fault]:
    yield from (no_column(f"/columns/{i}", name, names) for i, name in enumerate(wanted) if name not in names)


class _Rows(NamedTuple):
    """Rows that are compared."""

    sheet: Sheet
    table: pa.Table


def run(request: DriftRequest, inputs: Inputs, progress: Reporter) -> Outcome:
    stages, rng = Stages(progress), np.random.Generator(np.random.PCG64(request.seed))
    loaded = inputs.models[0] if inputs.models else None
    stages(0.0, "reading the tables")
    current, *others = [_read(request, source, loaded, inputs.datasets) for source in inputs.datasets]
    reference, warnings = _reference(request, current, others, loaded)
    stages(0.3, "comparing columns")
    parts = [*_parts(reference, current, loaded)]
    measured = drift_of(parts, Limits(request.tolerance_psi, request.significance), rng)
    changes = dict[str, float]()
    if loaded is not None:
        stages(0.6, "putting columns back")
        named = {each.column for each in measured if each.aspect == "values"}
        restorable = [column for column in reference.columns if column.name in named]
        changes = dict(prediction_changes(loaded.model, current.table, restorable, rng))
    stages(0.8, "measuring the model")
    result = DriftResult(
        kind="drift",
        reference=None if request.reference is None else UUID(str(request.reference)),
        current=UUID(str(request.current)),
        model=None if loaded is None else loaded.version.model,
        version=None if loaded is None else loaded.version.version,
        reference_rows=reference.rows,
        current_rows=current.table.num_rows,
        tolerance_psi=request.tolerance_psi,
        significance=request.significance,
        drifted=sum(each.drifted for each in measured),
        columns=ranked(measured, changes),
        quality=None if loaded is None else _quality(loaded, current, others, request.seed, progress),
        warnings=warnings,
    )
    return Outcome(result=result)


def ranked(measured: Sequence[ColumnDrift], changes: dict[str, float]) -> list[ColumnDrift]:
    """Drift with the changes of predictions, in the order of a report."""
    completed = [
        each.model_copy(update={"prediction_change": changes.get(each.column)}) if each.aspect == "values" else each
        for each in measured
    ]
    return sorted(completed, key=lambda each: (not each.drifted, -(each.prediction_change or 0.0), -each.psi))


def _read(request: DriftRequest, source: Source, loaded: Loaded | None, sources: Sequence[Source]) -> _Rows:
    """The columns that are compared, in the kinds in which they are, and the target of the model."""
    if loaded is None:
        shared = _shared_columns(*(each.sheet.columns for each in sources))
        names = [name for name in shared if request.columns is None or name in request.columns]
        return _Rows(source.sheet, source.read(names))
    header = loaded.version.header
    source = source.used_as(kinds_wanted(header, source.sheet.columns))
    names = [column.name for column in header.inputs]
    if header.target in {column.name for column in source.sheet.columns}:
        names.append(str(header.target))
    return _Rows(source.sheet, source.read(dict.fromkeys(names)))


def _shared_columns(columns: Sequence[TableColumn], others: Sequence[TableColumn] = ()) -> dict[str, TableColumn]:
    """Columns of both datasets that can be compared, by name."""
    by_name = {column.name: ColumnKind(column.kind) for column in others or columns}
    return {
        column.name: column
        for column in columns
        if column.name in by_name
        and {ColumnKind(column.kind), by_name[column.name]} & COMPARED_KINDS
        and (by_name[column.name] == column.kind or {by_name[column.name], ColumnKind(column.kind)} == TEXTS)
    }


def _reference(
    request: DriftRequest, current: _Rows, others: Sequence[_Rows], loaded: Loaded | None
) -> tuple[Reference, list[str]]:
    """The reference, and warnings about columns that are not compared. Raises InvalidData where there is none."""
    wanted = None if request.columns is None else {*request.columns}
    if others:
        (rows,) = others
        names = rows.table.column_names if loaded is None else [column.name for column in loaded.version.header.inputs]
        used = {column.name: column for column in rows.sheet.columns}
        kinds = [
            used[name]._replace(kind="categorical") if used[name].kind in TEXTS and loaded is None else used[name]
            for name in names
        ]
        reference = table_reference(rows.table, kinds)
        if loaded is not None:
            predicted = prediction_reference(loaded.model, loaded.model.predict(rows.table))
            reference = reference.model_copy(update={"predictions": predicted})
    elif loaded is None or loaded.reference is None:
        raise InvalidData(NO_REFERENCE)
    else:
        reference = loaded.reference
    columns = [column for column in reference.columns if wanted is None or column.name in wanted]
    reference = reference.model_copy(update={"columns": columns})
    compared, there = {column.name for column in columns}, {column.name for column in current.sheet.columns}
    expected = there if loaded is None else {column.name for column in loaded.version.header.inputs}
    left_out = sorted(expected - compared) if wanted is None else sorted((wanted or set()) - compared)
    sentences = [f"Not compared, as they are dates, texts, or of no column there: {', '.join(left_out)}."]
    return reference, sentences if left_out else []


def _parts(reference: Reference, current: _Rows, loaded: Loaded | None) -> Iterator[Compared]:
    for column in reference.columns:
        yield from compared_parts(column, count_cells(column, current.table.column(column.name)))
    if loaded is not None and reference.predictions:
        predicted = loaded.model.predict(current.table)
        counts = prediction_counts(reference.predictions, loaded.model.task, predicted)
        for column, column_counts in zip(reference.predictions, counts, strict=True):
            yield next(compared_parts(column, column_counts, prediction=True))


def _quality(
    loaded: Loaded, current: _Rows, others: Sequence[_Rows], seed: int, progress: Reporter
) -> list[MetricPair] | None:
    measured = _metrics(loaded, current, seed, progress)
    if measured is None:
        return None
    before = (_metrics(loaded, others[0], seed, progress) if others else None) or {}
    return [
        MetricPair(name=name, label=label, reference=before.get((name, label)), current=metric)
        for (name, label), metric in measured.items()
    ]


def _metrics(loaded: Loaded, rows: _Rows, seed: int, progress: Reporter) -> dict[tuple[str, str | None], Metric] | None:
    """None: the rows have no target of the model."""
    header, model = loaded.version.header, loaded.model
    if not _has_truth(header, model, rows):
        return None
    target = read_truth(header, header.target, rows.table)
    if target.rows.size < 2:
        return None
    evaluated = evaluate_table(model, rows.table, target, NO_OPTIONS, seed, progress=progress)
    return {(each.name, each.label): each for each in evaluated.evaluation.metrics}


def _has_truth(header: Header, model: Model, rows: _Rows) -> bool:
    if not Task(header.task).supervised or header.target not in rows.table.column_names:
        return False
    return not [*column_faults(model, header.target, rows.sheet.columns, rows.table.num_rows)]


KIND = Kind(
    operation="compare_distributions",
    dry_run="validate_drift",
    request=DriftRequest,
    result=DriftResult,
    needs=needs,
    check=check,
    run=run,
)
