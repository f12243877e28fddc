"""Import a model of XGBoost, LightGBM, scikit-learn, ONNX or another Valiant: a version that predicts as it did there.

The file is parsed in a process of its own, under limits, and stored as this service's own trees or weights, or as the
graph that onnxruntime computes. On rows at and beside every threshold, or in all directions of other models, its sums
must be those of treelite's reference, of scikit-learn itself, or of onnxruntime; with `check`, its predictions must
also be the user's. Else no version is made. What would be predicted otherwise without a word is refused by name, such
as `zero_as_missing` and linear leaves of LightGBM.

An artifact of Valiant is stored as it is, under the same digest, once it predicts the rows of the check as it did.
"""

from collections.abc import Iterator, Sequence
from typing import Literal, get_args
from uuid import UUID

import numpy as np
import pyarrow as pa
from pydantic import Field

from app.base.errors import CorruptModel, InvalidData, InvalidRequest
from app.base.faults import Fault
from app.base.references import DatasetReference
from app.base.wire import Body
from app.ml.contract.column_names import no_column
from app.ml.contract.file_formats import BOOSTED, NOT_BOOSTED, FileFormat, FormatNotAllowed, GuardedFormat
from app.ml.contract.labels import Label
from app.ml.contract.model_file_options import ModelFileOptions
from app.ml.contract.model_reference import Name
from app.ml.contract.progress import Reporter, Stages
from app.ml.contract.task import Task
from app.ml.evaluation.report import Report
from app.ml.kinds.job import Checked, Inputs, JobContext, Kind, Needs, Outcome, Request, Source, Trained
from app.ml.models.golden import ROWS, record_golden, spaced
from app.ml.models.import_check import Comparison, check_probes, column_counts
from app.ml.models.imported_model import ImportedInput, Naming, imported, table_of
from app.ml.models.model import Model, decode, encode
from app.ml.models.parsed_model import ParsedModel
from app.ml.models.safetensors_format import canonical, read_document
from app.ml.tables.casting import kinds_wanted
from app.ml.training.reporting.receipt import libraries
from app.ml.training.versions.table_evaluation import column_faults

NEEDED = {"onnx": ("imported_onnx",), "valiant": ("valiant",)}
"""Algorithms and formats that a worker has to know, where they are not those of the first release with imports."""
OWN = ("inputs", "classes", "task", "target")
"""Fields that an artifact states itself."""


class ImportCheck(Body):
    """The user's own predictions, made by the library itself."""

    dataset: DatasetReference = Field(
        description="The id or the name of a dataset with the inputs of the model and these predictions."
    )
    prediction_columns: list[str] = Field(
        min_length=1,
        max_length=10_000,
        description="Columns of the predictions: the numbers of a regression; of a classification the predicted "
        "classes, or the probability of the second of two classes, or the probabilities of all classes in their order; "
        "of clusters their numbers, of a projection the coordinates.",
    )
    label_column: str | None = Field(
        None,
        max_length=1000,
        description="Column of the classes that the library predicts, compared beside their probabilities; null: the "
        "predicted classes are not compared where the predictions are probabilities.",
    )


class ImportRequest(Request):
    """A model of another library, as a file that was uploaded."""

    model: Name = Field(description="The model that gets a new version; made if it does not exist.")
    file: UUID = Field(description="Id of the uploaded file, from `POST /v1/files`.")
    file_format: FileFormat = Field(
        description="Format of the file: the text of a LightGBM model, the JSON or UBJSON of an XGBoost model, the "
        "trees or weights of scikit-learn as `valiant import` writes them; a graph of ONNX, or the artifact of a "
        "version of Valiant, which an operator must allow the project first."
    )
    task: Literal["classification", "regression"] | None = Field(
        None, description="Task of the model; null: by the objective in the file."
    )
    target: str = Field(
        "target", min_length=1, max_length=1000, description="Name of what is predicted, which the file does not hold."
    )
    inputs: list[ImportedInput] | None = Field(
        None,
        max_length=10_000,
        description="Names and kinds of all columns, in the order of the file; null: those of the file.",
    )
    classes: list[Label] | None = Field(
        None, min_length=2, max_length=10_000, description="Class labels in the order of the outputs; null: 0, 1, …"
    )
    iterations: int | None = Field(
        None,
        ge=1,
        lt=2**31,
        description="Number of boosting rounds that are used, from the first, such as `best_iteration` + 1 of "
        "an early-stopped booster; null: all of them.",
    )
    check: ImportCheck | None = Field(
        None,
        description="Predictions to compare with; null: only those of the reference on probe rows are compared. An "
        "artifact of Valiant needs them.",
    )


def needs(request: ImportRequest) -> Needs:
    return Needs(() if request.check is None else (request.check.dataset,), files=(request.file,))


def check(request: ImportRequest, known: JobContext) -> Checked:
    if request.file_format in get_args(GuardedFormat) and request.file_format not in known.file_formats:
        raise FormatNotAllowed(f"The project may not import files in the format {request.file_format}.")
    if faults := [*_faults(request), *(_check_faults(request.check, known) if request.check else ())]:
        raise InvalidRequest(faults=faults)
    return Checked(request.model, algorithms=NEEDED.get(request.file_format, ("imported_trees", "imported_linear")))


def run(request: ImportRequest, inputs: Inputs, progress: Reporter) -> Outcome:
    (file,) = inputs.files
    stages = Stages(progress)
    stages(0.0, "parsing the file")
    if request.file_format == "valiant" and request.check is not None:
        return _artifact(request.check, file.content(), inputs.datasets[0], stages)
    parsed = file.parse(request.file_format, ModelFileOptions(request.iterations))
    receipt = {"data_digest": file.digest, "file_format": request.file_format, "parser": parsed.parser}
    naming = Naming(request.inputs, request.classes, request.task and Task(request.task), request.target)
    model = imported(parsed, naming, receipt | {"libraries": libraries()})
    stages(0.5, "comparing predictions")
    check_probes(parsed)
    if request.check is None:
        rows, golden = 0, _probes(model, parsed)
    else:
        rows, golden = _compared(model, request.check, inputs.datasets[0])
    stages(0.95, "writing the model")
    probes = f"On {len(parsed.probes.x)} probe rows the sums are those of {parsed.parser}"
    checked = f", and on {rows} rows the predictions are those given for the check" if rows else ""
    evidence = f"{probes}{checked}. Nothing was trained and no row was held out."
    report = _report(model, evidence, parsed.terms if parsed.trees else 1, parsed.warnings)
    return Outcome(trained=Trained(encode(model), report, record_golden(model, golden)))


def _artifact(wanted: ImportCheck, blob: bytes, source: Source, stages: Stages) -> Outcome:
    """The bytes stay as they are, so that the version has the digest that it has where it was trained."""
    try:
        model = decode(blob, "The file")
        _demand_storable(model, blob)
        stages(0.5, "comparing predictions")
        rows, table = _compared(model, wanted, source)
        stages(0.95, "writing the model")
        evidence = (
            f"Valiant trained it elsewhere, where its report is. On {rows} rows the predictions are those given for "
            "the check; no row was held out."
        )
        return Outcome(trained=Trained(blob, _report(model, evidence), record_golden(model, table)))
    except (CorruptModel, ValueError, TypeError, IndexError, ArithmeticError) as error:
        reason = error.detail if isinstance(error, CorruptModel) else "The model in it does not predict."
        raise InvalidData(reason, faults=[Fault("/file", reason, "damaged_file")]) from error


def _demand_storable(model: Model, blob: bytes) -> None:
    """Raises CorruptModel and ValueError for a header that no version could have."""
    written = canonical(read_document(blob))  # refuses numbers that are not finite, as the database does
    if "\\u0000" in written or not isinstance(model.receipt.get("data_digest"), str):
        raise CorruptModel("The header of the file is not one of this service.")


def _faults(request: ImportRequest) -> Iterator[Fault]:
    if request.file_format == "valiant":
        for name in OWN:
            if name in request.model_fields_set:
                yield Fault(f"/{name}", "The artifact states it itself.", "not_allowed")
        if request.check is None:
            yield Fault("/check", "An artifact needs rows with its predictions.", "required")
    if request.iterations is not None and request.file_format not in BOOSTED:
        yield Fault("/iterations", NOT_BOOSTED, "not_allowed")
    if request.classes is not None and len({(type(one), one) for one in request.classes}) < len(request.classes):
        yield Fault("/classes", "A class is named twice.", "duplicate")
    yield from _input_faults(request)


def _input_faults(request: ImportRequest) -> Iterator[Fault]:
    seen = set()
    for place, column in enumerate(request.inputs or ()):
        if column.name in seen:
            yield Fault(f"/inputs/{place}/name", "An earlier input has this name.", "duplicate")
        seen.add(column.name)
        if column.levels is not None and column.kind != "categorical":
            yield Fault(f"/inputs/{place}/levels", "Only a categorical column has levels.", "not_allowed")
        elif column.levels is not None and len(set(column.levels)) < len(column.levels):
            yield Fault(f"/inputs/{place}/levels", "A level is named twice.", "duplicate")


def _check_faults(wanted: ImportCheck, known: JobContext) -> Iterator[Fault]:
    (sheet,) = known.datasets
    names = {column.name for column in sheet.columns}
    for place, name in enumerate(wanted.prediction_columns):
        if name not in names:
            yield no_column(f"/check/prediction_columns/{place}", name, names)
    if wanted.label_column is not None and wanted.label_column not in names:
        yield no_column("/check/label_column", wanted.label_column, names)


def _compared(model: Model, wanted: ImportCheck, source: Source) -> tuple[int, pa.Table]:
    """Number of rows, and some of them. Raises ImportMismatch and InvalidRequest."""
    found = column_faults(model, None, source.sheet.columns, source.sheet.rows)
    faults = [fault._replace(pointer=f"/check{fault.pointer}") for fault in found]
    if len(wanted.prediction_columns) not in (counts := column_counts(model)):
        detail = f"The predictions are {' or '.join(map(str, counts))} columns."
        faults.append(Fault("/check/prediction_columns", detail, "wrong_count"))
    if wanted.label_column is not None and model.classes is None:
        faults.append(Fault("/check/label_column", "Only a classification predicts classes.", "not_allowed"))
    if faults:
        raise InvalidRequest("The dataset of the check does not fit the model.", faults=faults)
    names = [column.name for column in model.inputs]
    comparison, golden = Comparison(), None
    for batch in source.used_as(kinds_wanted(model, source.sheet.columns)).batches:
        comparison = comparison.after(model, batch, wanted.prediction_columns, wanted.label_column)
        if golden is None:
            golden = batch.select(names).take(pa.array(spaced(np.arange(batch.num_rows))))
    comparison.demand(wanted.prediction_columns, wanted.label_column)
    return comparison.rows, golden


def _probes(model: Model, parsed: ParsedModel) -> pa.Table:
    """Probe rows of finite numbers."""
    x = parsed.probes.x
    rows = np.flatnonzero(~np.isinf(x).any(axis=1))
    if rows.size < ROWS:
        x, rows = np.where(np.isinf(x), np.nan, x), np.arange(len(x))
    return table_of(model.inputs, x[spaced(rows)])


def _report(model: Model, evidence: str, iterations: int = 1, warnings: Sequence[str] = ()) -> Report:
    return Report(
        task=model.task,
        evidence=evidence,
        rows_train=0,
        rows_test=0,
        seed=0,
        test=[],
        train=[],
        converged=True,
        iterations=iterations,
        columns=[column.name for column in model.inputs],
        summary=model.algorithm.summary(model.params, model.state) if model.algorithm.summary else None,
        warnings=list(warnings),
    )


KIND = Kind(
    operation="import_model",
    request=ImportRequest,
    needs=needs,
    check=check,
    run=run,
    dry_run="validate_import",
    name="import",
)
