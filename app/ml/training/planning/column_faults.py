"""Faults of the columns that a training names: its target, row weights and features."""

from collections import Counter
from collections.abc import Iterator, Mapping

from app.base.faults import Fault
from app.ml.catalogue import nested
from app.ml.contract.algorithm import TargetKind, Task
from app.ml.contract.column_names import no_column
from app.ml.contract.columns import ColumnKind, TableColumn
from app.ml.preparation.target_limits import limit_faults
from app.ml.training.planning.train_spec import TrainSpec

MAX_CLASSES = 1000
"""A target with more different values is not a set of classes."""


def column_faults(
    spec: TrainSpec, columns_by_name: Mapping[str, TableColumn], task: Task | None, rows: int, *, target: str | None
) -> Iterator[Fault]:
    """task: None if it could not be chosen. rows: of the table. target: learned from."""
    yield from _target_faults(spec.model_copy(update={"target": target}), columns_by_name, task, rows)
    yield from _weight_faults(spec, columns_by_name, task)
    yield from _feature_faults(spec, columns_by_name, rows)


def transform_faults(spec: TrainSpec, task: Task | None) -> Iterator[Fault]:
    """Faults of what the preparation does with the target."""
    if spec.preprocessing.target != "none" and task is not None and not task.of_numbers:
        yield Fault("/preprocessing/target", "Only the target of a regression can be transformed.")
    if spec.preprocessing.categories == "target" and spec.target is None:
        yield Fault("/preprocessing/categories", "There is no target to encode categories by: set it to levels.")
    yield from limit_faults(spec.preprocessing, task)


def _target_faults(
    spec: TrainSpec, columns_by_name: Mapping[str, TableColumn], task: Task | None, rows: int
) -> Iterator[Fault]:
    pointer = "/target"
    if spec.target is None:
        if rows < 2:
            yield Fault("/dataset", "At least 2 rows are needed.")
        return
    column = columns_by_name.get(spec.target)
    if column is None:
        yield no_column(pointer, spec.target, columns_by_name)
        return
    usable = rows - column.missing
    if usable == 0:
        yield Fault(pointer, "Every value of the target is missing.")
    elif usable < 2:
        yield Fault(pointer, "At least 2 rows with a target are needed.")
    elif column.distinct == 1:
        yield Fault(pointer, "The target has a single value: there is nothing to learn.")
    if spec.task is None and column.mostly_numbers:
        numbers = f'To predict numbers, give kinds: {{"{column.name}": "numeric"}}'
        yield Fault(pointer, f"{column.mostly_numbers} {numbers}; to predict classes, give the task.", "mostly_numbers")
    if task is not None:
        yield from kind_of_target_faults(column, nested.entry_of(spec.algorithm).algorithm.target(task))


def kind_of_target_faults(column: TableColumn, kind: TargetKind | None) -> Iterator[Fault]:
    """Faults of a target that is to have values of this kind."""
    pointer = "/target"
    if kind is TargetKind.NUMBERS and column.kind != ColumnKind.NUMERIC:
        yield Fault(pointer, f"Regression needs a numeric target, not a {column.kind} one.")
    if kind is TargetKind.CLASSES and column.kind == ColumnKind.DATETIME:
        yield Fault(pointer, "Points in time cannot be classes.")
    if kind is TargetKind.CLASSES and (column.distinct is None or column.distinct > MAX_CLASSES):
        yield Fault(pointer, f"The target has more than {MAX_CLASSES} different values: too many classes.")


def _weight_faults(spec: TrainSpec, columns_by_name: Mapping[str, TableColumn], task: Task | None) -> Iterator[Fault]:
    for pointer, name in (("/weights", spec.weights), ("/sigma", spec.sigma)):
        if name is None:
            continue
        column = columns_by_name.get(name)
        if column is None:
            yield no_column(pointer, name, columns_by_name)
        elif column.kind != ColumnKind.NUMERIC:
            yield Fault(pointer, f"Numbers are needed; this column is {column.kind}.")
        if name == spec.target:
            yield Fault(pointer, "The target cannot weigh the rows too.")
    if spec.sigma is not None and task is not None and not task.of_numbers:
        yield Fault("/sigma", f"Only a numeric target has known errors; this is {task}. Weigh its rows by weights.")
    if spec.weights is not None and spec.sigma is not None:
        yield Fault("/sigma", "Rows have weights or errors, not both: a row of error sigma weighs 1/sigma².")


def _feature_faults(spec: TrainSpec, columns_by_name: Mapping[str, TableColumn], rows: int) -> Iterator[Fault]:
    seen: Counter[str] = Counter()
    for place, name in enumerate(spec.features or ()):
        pointer = f"/features/{place}"
        column = columns_by_name.get(name)
        if column is None:
            yield no_column(pointer, name, columns_by_name)
        elif name == spec.target:
            yield Fault(pointer, "The target cannot be a feature too.")
        elif name in {spec.weights, spec.sigma}:
            yield Fault(pointer, "What weighs the rows cannot be a feature too.")
        elif name == spec.offset_column:
            yield Fault(pointer, "What is part of the score cannot be a feature too.")
        elif column.kind == ColumnKind.TEXT and name not in spec.preprocessing.text:
            yield Fault(pointer, "Free text is a feature only of a training that names it in preprocessing.text.")
        elif column.missing == rows:
            yield Fault(pointer, "This column has no values.")
        seen[name] += 1
        if seen[name] == 2:
            yield Fault(pointer, "This feature is named twice.", "duplicate")
