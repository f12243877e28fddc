"""Predict every row of a dataset with a model version, as a new dataset.

The new dataset has the rows of the old one in their order: the columns that `keep` names, the prediction, the
probabilities of a classification, interval ends and outputs where they are requested, and the flags. Rows are
predicted some at a time, so that memory does not bound their number, and a job that is interrupted goes on behind the
rows it has stored.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal
from uuid import UUID

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field, StringConstraints

from app.base.errors import InvalidRequest
from app.base.faults import Fault
from app.base.references import NAME_LENGTH, DatasetReference
from app.base.suggestions import no_such
from app.ml.catalogue.algorithm_files import every_entry
from app.ml.contract.algorithm import Task
from app.ml.contract.column_names import no_column
from app.ml.contract.columns import ColumnKind, TableColumn
from app.ml.contract.model_reference import ModelRef
from app.ml.contract.progress import Reporter
from app.ml.kinds.job import Checked, Inputs, JobContext, Kind, Needs, Outcome, Request, Result, Sheet, Table
from app.ml.models.cluster_description import offered_outputs
from app.ml.models.contributions import (
    CONTRIBUTIONS,
    Contributions,
    contributions_of,
    demand_contributions,
    method_in,
)
from app.ml.models.header import Header
from app.ml.models.included_outputs import predict_with
from app.ml.models.model import Model, Predicted
from app.ml.models.reasons import reasons_of
from app.ml.preparation.flags import flag_texts
from app.ml.tables.casting import kinds_wanted, recast_columns, recast_table
from app.ml.tables.data_sheet import Remark
from app.ml.training.versions.table_evaluation import column_faults

CELLS = 1 << 19
"""Values of a batch: its rows times the columns of the model and of the result."""


class PredictJobRequest(ModelRef, Request):
    """Predict every row of a dataset with a version of a model."""

    dataset: DatasetReference = Field(
        description="A dataset that has the model's columns: its id, or its name, which means the newest of that name."
    )
    result_name: Annotated[str, StringConstraints(pattern=rf"^[^\x00-\x1f\x7f]{{1,{NAME_LENGTH}}}$")] | None = Field(
        None, description="Name of the new dataset; null: that of the model, followed by `-predictions`."
    )
    keep: list[str] = Field(
        [], max_length=1000, description="Columns of the dataset that the new one has too, such as an id."
    )
    include: list[str] = Field(
        [],
        max_length=20,
        description="Outputs of the model beside its predictions, such as `distance`; and `contributions`, or "
        "`interventional_contributions` of trees: a column `contribution_of_…` for each column of the model, "
        "`contribution_base` and `contribution_raw`, of several classes one for each, with its name at the end.",
    )
    top: int | None = Field(
        None,
        ge=1,
        le=100,
        description="Largest contributions of each row, as sentences in a column `reasons`; null: no such column. "
        "Needs `contributions` in `include`.",
    )
    confidence: float | None = Field(
        None,
        gt=0,
        lt=1,
        description="Confidence of prediction intervals of a regression, in columns `lower` and `upper`; null: none.",
    )


class PredictJobResult(Result):
    """Dataset of the predictions."""

    kind: Literal["predict"] = Field(description="Kind of the job; it identifies the variant of this schema.")
    model: str = Field(description="Name of the model.")
    version: int = Field(description="Version of the model, counted from 1.")
    digest: str = Field(description="sha256: of the version's bytes.")
    dataset: UUID = Field(description="Id of the dataset whose rows were predicted.")
    rows: int = Field(description="Number of rows, of either dataset.")
    result_dataset: UUID | None = Field(None, description="Id of the new dataset.")


def needs(request: PredictJobRequest) -> Needs:
    return Needs((request.dataset,), (request.wanted,))


def check(request: PredictJobRequest, known: JobContext) -> Checked:
    (sheet,), (version,) = known.datasets, known.models
    faults = [*request.choice_faults(), *column_faults(version.header, None, sheet.columns, sheet.rows)]
    faults += [*_keep_faults(request, version.header, sheet), *_option_faults(request, version.header)]
    if faults:
        raise InvalidRequest(faults=faults)
    return Checked(request.model, algorithms=(version.header.algorithm,))


def _keep_faults(request: PredictJobRequest, header: Header, sheet: Sheet) -> Iterator[Fault]:
    names = [column.name for column in sheet.columns]
    made = {"prediction", "lower", "upper", "flags", *request.include}
    made |= {f"probability_{label}" for label in header.classes or ()}
    for i, name in enumerate(request.keep):
        if name not in names:
            yield no_column(f"/keep/{i}", name, names)
        elif name in request.keep[:i]:
            yield Fault(f"/keep/{i}", "This column is named twice.", "duplicate")
        elif name in made or _is_made(name, request):
            yield Fault(f"/keep/{i}", f"The new dataset has a column {name!r} of its own.", "duplicate_column")


def _is_made(name: str, request: PredictJobRequest) -> bool:
    """True if a column that is made may have this name."""
    if name.rpartition("_")[0] in {"prediction", *request.include}:
        return True
    return method_in(request.include) is not None and name.startswith(
        ("contribution_", "standard_error_of_", "reasons")
    )


def _option_faults(request: PredictJobRequest, header: Header) -> Iterator[Fault]:
    if request.confidence is not None and not Task(header.task).of_numbers:
        yield Fault("/confidence", f"Only a regression has prediction intervals; this is a {header.task}.")
    entry = every_entry().get(header.algorithm)
    offered = offered_outputs(entry.algorithm, Task(header.task)) if entry else {}
    if request.top is not None and method_in(request.include) is None:
        yield Fault("/top", f"Reasons need {CONTRIBUTIONS} in include.")
    for i, name in enumerate(request.include):
        if name not in offered and not method_in([name]):
            detail = no_such("The model has no output", name, offered) if offered else "The model has no outputs."
            yield Fault(f"/include/{i}", detail)


def run(request: PredictJobRequest, inputs: Inputs, progress: Reporter) -> Outcome:
    (source,), (loaded,) = inputs.datasets, inputs.models
    version, sheet = loaded.version, source.sheet
    if request.confidence is not None:
        _ = loaded.model.interval  # raises NoInterval
    _demand_outputs(request, loaded.model)
    result = PredictJobResult(
        kind="predict",
        model=version.model,
        version=version.version,
        digest=version.digest,
        dataset=UUID(str(request.dataset)),
        rows=sheet.rows,
    )
    columns = {column.name: column for column in sheet.columns}
    kept = {name: _remark(columns[name]) for name in request.keep}
    name = request.result_name or f"{version.model}-predictions"
    return Outcome(result=result, table=Table(name, _batches(request, inputs, progress), kept))


def _demand_outputs(request: PredictJobRequest, model: Model) -> None:
    """Raises InvalidRequest for outputs that clusters without columns, or of an earlier release, do not have, and
    NoContributions.
    """
    if (method := method_in(request.include)) is not None:
        demand_contributions(model, method)
    faults = [
        Fault(f"/include/{i}", no_such("The model has no output", name, model.algorithm.outputs))
        for i, name in enumerate(request.include)
        if name not in model.algorithm.outputs and not method_in([name])
    ]
    if faults:
        raise InvalidRequest(faults=faults)


def _remark(column: TableColumn) -> Remark:
    """Remark on the column, as the dataset has it."""
    return Remark(notation=column.notation, kind=ColumnKind(column.kind), mostly_numbers=column.mostly_numbers)


def _batches(request: PredictJobRequest, inputs: Inputs, progress: Reporter) -> Iterator[pa.Table]:
    """Those that are written, then the predictions of all rows behind them."""
    (source,), (loaded,) = inputs.datasets, inputs.models
    header, columns = loaded.version.header, source.sheet.columns
    used = recast_columns(columns, kinds_wanted(header, columns))
    done = 0
    for table in inputs.written:
        done += len(table)
        yield table
    row = 0
    for table in _parts(request, loaded.model, source.batches):
        row += len(table)
        if row > done:
            progress((row - len(table)) / source.sheet.rows, f"predicted {row - len(table)} rows", {})
            yield _predicted(request, loaded.model, table, recast_table(table, used))


def _width(request: PredictJobRequest, model: Model) -> int:
    """Number of columns of probabilities, of outputs with several values a row, and of contributions."""
    widths = (model.algorithm.outputs[name].width for name in _outputs(request))
    width = len(model.classes or ()) + sum(width(model.params, model.state) for width in widths if width)
    if method_in(request.include):
        width += (2 * len(model.inputs) + 2) * max(1, len(model.classes or ()))
    return width


def _outputs(request: PredictJobRequest) -> list[str]:
    return [name for name in request.include if not method_in([name])]


def _parts(request: PredictJobRequest, model: Model, batches: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Parts of the batches that are predicted at once, the same ones at every attempt."""
    rows = max(1, CELLS // (len(model.inputs) + model.preparation.layout.width + _width(request, model)))
    for table in batches:
        yield from (table.slice(start, rows) for start in range(0, len(table), rows))


def _predicted(request: PredictJobRequest, model: Model, table: pa.Table, used: pa.Table) -> pa.Table:
    """table: rows of the dataset; used: the same, with columns as the model uses them."""
    predicted = predict_with(model, used, _outputs(request), request.confidence)
    columns: dict[str, Any] = {name: table[name] for name in request.keep}
    columns |= _columns("prediction", predicted.values) if model.classes is None else {"prediction": predicted.labels}
    if predicted.intervals is not None:
        columns |= zip(("lower", "upper"), map(_finite, predicted.intervals.T), strict=True)
    if predicted.probabilities is not None and model.classes is not None:
        names = [f"probability_{label}" for label in model.classes]
        columns |= zip(names, map(_finite, predicted.probabilities.T), strict=True)
    for name, values in predicted.outputs.items():
        columns |= _columns(name, values, first=0)
    if (method := method_in(request.include)) is not None:
        found = contributions_of(model, model.preparation.raw(used), method)
        columns |= _contributions(found, used, predicted, request.top)
    columns["flags"] = pa.array(flag_texts(predicted.flags, len(table)), pa.string())
    return pa.table(columns)


def _contributions(
    found: Contributions, used: pa.Table, predicted: Predicted, top: int | None
) -> Iterator[tuple[str, pa.Array]]:
    """Name and values of each column of contributions."""
    for score, label in enumerate(found.scores):
        end = f"_{label}" if len(found.scores) > 1 else ""
        yield f"contribution_base{end}", pa.array(np.full(len(found.raw), found.base[score]))
        yield f"contribution_raw{end}", pa.array(np.ascontiguousarray(found.raw[:, score]))
        for place, name in enumerate(found.columns):
            yield f"contribution_of_{name}{end}", pa.array(np.ascontiguousarray(found.values[:, score, place]))
            if found.standard_errors is not None:
                errors = np.ascontiguousarray(found.standard_errors[:, score, place])
                yield f"standard_error_of_{name}{end}", pa.array(errors)
    if top is not None:
        rows = reasons_of(found, used, predicted, top)
        yield "reasons", pa.array(["; ".join(reason.text for reason in row) for row in rows], pa.string())


def _columns(name: str, values: NDArray[Any], first: int = 1) -> Mapping[str, pa.Array]:
    """A column for (n,) values; for (n, k) one each, numbered from `first`: of outputs from 0, as clusters are."""
    if values.ndim == 1:
        return {name: _finite(values)}
    return {f"{name}_{place}": _finite(column) for place, column in enumerate(values.T, first)}


def _finite(values: NDArray[Any]) -> pa.Array:
    """Null where a number is not finite."""
    found = np.ascontiguousarray(values)
    return pa.array(found, mask=~np.isfinite(found) if found.dtype.kind == "f" else None)


KIND = Kind(
    operation="predict_dataset",
    dry_run="validate_dataset_prediction",
    request=PredictJobRequest,
    result=PredictJobResult,
    needs=needs,
    check=check,
    run=run,
)
