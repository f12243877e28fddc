"""A model of another library as a model of this service: names of its inputs and classes around it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
from pydantic import Field

from app.base.errors import InvalidRequest
from app.base.faults import Fault
from app.base.wire import Body
from app.ml.catalogue.algorithm_files import find
from app.ml.contract.algorithm import JSON, Accepts, Matrix, Task
from app.ml.contract.columns import ColumnKind, InputColumn
from app.ml.contract.labels import Class
from app.ml.models.model import Model
from app.ml.models.parsed_model import ParsedColumn, ParsedModel
from app.ml.numerics.trees.foreign_trees import MAX_LEVELS, resized
from app.ml.preparation.preparation import Preparation
from app.ml.preparation.state import PreparationState

ARROW = {ColumnKind.NUMERIC: pa.float64(), ColumnKind.BOOLEAN: pa.bool_(), ColumnKind.CATEGORICAL: pa.string()}
MOST_LEVELS = MAX_LEVELS
UNREADABLE = "XGBoost writes the names of categories wrongly where one has other letters than those of ASCII."


class ImportedInput(Body):
    """One input of the model, by the name under which rows hold it."""

    name: str = Field(min_length=1, max_length=1000, description="Name of the column.")
    kind: Literal["numeric", "boolean", "categorical"] = Field(
        "numeric",
        description="Kind of the column; boolean: rows hold true and false, which the trees compare as 1 and 0.",
    )
    levels: list[str] | None = Field(
        None,
        max_length=MOST_LEVELS,
        description="Names of the categories, in the order of their codes in training; null: those of the file, or the "
        "codes themselves.",
    )


class Naming(NamedTuple):
    """The part of a model that a request states, beside the file."""

    inputs: Sequence[ImportedInput] | None
    classes: Sequence[Class] | None
    task: Task | None
    target: str


def imported(parsed: ParsedModel, naming: Naming, receipt: Mapping[str, JSON]) -> Model:
    """Raises InvalidRequest with every fault of the naming, each with its pointer into the request."""
    task = naming.task or parsed.task
    faults = [*_input_faults(parsed, naming.inputs), *_class_faults(parsed, task, naming.classes)]
    if faults:
        raise InvalidRequest("The request does not fit the file.", faults=faults)
    columns = [_named(column, place, naming.inputs) for place, column in enumerate(parsed.columns)]
    counts = np.array([0 if column.levels is None else len(column.levels) + 1 for column in columns], np.int64)
    state = parsed.state._replace(classes=max(2, parsed.outputs) if task.of_classes else 0)
    if trees := parsed.trees:
        state = state._replace(trees=resized(trees.trees, counts))
    p = counts.size
    fills = np.array([column.fill or 0.0 for column in parsed.columns])
    learned = PreparationState(fills, np.zeros(p), np.ones(p), counts > 0, np.zeros(p, np.bool_))
    accepts = find(parsed.algorithm).algorithm.accepts
    missing, categories = Accepts.MISSING in accepts, Accepts.CATEGORIES in accepts
    classes: tuple[Class, ...] = tuple(naming.classes or parsed.classes or range(state.classes))
    kinds = {column.name: column.kind for column in columns if column.source_kind}
    return Model(
        name=parsed.algorithm,
        task=task,
        params=parsed.params,
        state=state,
        preparation=Preparation(tuple(columns), learned, keeps_missing=missing, keeps_categories=categories),
        target=naming.target,
        classes=classes if task.of_classes else None,
        receipt={**receipt, "spec": {"kinds": kinds}},
    )


def table_of(inputs: Sequence[InputColumn], raw: Matrix) -> pa.Table:
    """Rows as a client sends them, of a raw matrix (n, p) whose last code of a category is that of all others."""
    return pa.table({column.name: _cells(column, values) for column, values in zip(inputs, raw.T, strict=True)})


def _cells(column: InputColumn, values: Matrix) -> pa.Array:
    missing = np.isnan(values)
    if column.levels is None:
        return pa.array(values, mask=missing).cast(ARROW[ColumnKind(column.kind)], safe=False)
    other = "".join(["?", *column.levels])[:1000]  # longer than any of them
    names = pa.array([*column.levels, other], pa.string())
    return names.take(pa.array(np.where(missing, 0, values).astype(np.int64), mask=missing))


def _named(column: ParsedColumn, place: int, inputs: Sequence[ImportedInput] | None) -> InputColumn:
    if inputs is None:
        kind = ColumnKind.NUMERIC if column.levels is None else ColumnKind.CATEGORICAL
        levels = None if column.levels is None else list(column.levels)
        null = column.nullable
        return InputColumn(name=column.name, kind=kind, levels=levels, source_kind=column.source_kind, nullable=null)
    declared = inputs[place]
    if declared.kind != "categorical":
        return InputColumn(name=declared.name, kind=declared.kind, nullable=column.nullable)
    levels_of_file = declared.levels is None
    levels = declared.levels if declared.levels is not None else list(column.levels or ())
    return InputColumn(
        name=declared.name,
        kind=declared.kind,
        levels=levels,
        source_kind=column.source_kind if levels_of_file else None,
    )


def _input_faults(parsed: ParsedModel, inputs: Sequence[ImportedInput] | None) -> Iterator[Fault]:
    if inputs is None:
        inputs_of_file = [f"{column.name!r}" for column in parsed.columns if column.demands_names]
        if inputs_of_file:
            detail = f"Name all inputs, with the levels of {', '.join(inputs_of_file[:5])}. {UNREADABLE}"
            yield Fault("/inputs", detail[:1000], "required")
        return
    if len(inputs) != len(parsed.columns):
        yield Fault(
            "/inputs", f"The file has {len(parsed.columns)} columns, and here are {len(inputs)}.", "wrong_count"
        )
        return
    compared = set(parsed.trees.trees.column.tolist() if parsed.trees else range(len(inputs)))
    for place, (declared, column) in enumerate(zip(inputs, parsed.columns, strict=True)):
        pointer, categorical = f"/inputs/{place}", declared.kind == "categorical"
        if categorical and column.levels is None and (place in compared or declared.levels is None):
            yield Fault(f"{pointer}/kind", "The model reads this column as a number.", "wrong_kind")
        elif not categorical and column.levels is not None:
            yield Fault(f"{pointer}/kind", "The trees test the categories of this column.", "wrong_kind")
        elif column.demands_names and (declared.levels is None or len(declared.levels) != len(column.levels or ())):
            detail = f"Name its {len(column.levels or ())} levels in the order of the training. {UNREADABLE}"
            yield Fault(f"{pointer}/levels", detail, "required" if declared.levels is None else "wrong_count")
        elif declared.levels is not None and column.levels is not None:
            yield from _level_faults(f"{pointer}/levels", declared.levels, column)


def _level_faults(pointer: str, levels: Sequence[str], column: ParsedColumn) -> Iterator[Fault]:
    file_levels = column.levels or ()
    if column.codes_only and len(levels) < len(file_levels):
        yield Fault(
            pointer, f"The trees test {len(file_levels)} codes, and here are {len(levels)} names.", "wrong_count"
        )
    if not (column.codes_only or column.demands_names) and tuple(levels) != file_levels:
        yield Fault(pointer, "The file names the categories, and differently.", "other_levels")


def _class_faults(parsed: ParsedModel, task: Task, classes: Sequence[Class] | None) -> Iterator[Fault]:
    count, single = parsed.state.classes, parsed.outputs == 1
    if task is not parsed.task:
        probable = parsed.params.transform in {"sigmoid", "step"}
        if not single or not (task.of_numbers or (task.of_classes and probable)):
            detail = f"The objective {parsed.params.objective or 'that is not stated'} is one of {parsed.task}."
            yield Fault("/task", detail, "wrong_task")
            return
        count = 2
    if classes is None:
        return
    if not task.of_classes:
        yield Fault("/classes", "A regression has no classes.", "not_allowed")
    elif len(classes) != count:
        yield Fault("/classes", f"The model has {count} classes, and here are {len(classes)}.", "wrong_count")
