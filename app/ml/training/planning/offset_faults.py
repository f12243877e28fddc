"""Faults of a column that is part of the score of each row: an exposure or an offset."""

from collections.abc import Iterator, Mapping

from app.base.faults import Fault
from app.ml.catalogue.nested import entry_of
from app.ml.contract.algorithm import Accepts, Task
from app.ml.contract.column_names import no_column
from app.ml.contract.columns import ColumnKind, TableColumn
from app.ml.training.planning.train_spec import TrainSpec


def offset_faults(spec: TrainSpec, columns_by_name: Mapping[str, TableColumn], task: Task | None) -> Iterator[Fault]:
    """Roles that exclude each other, algorithms without an offset, and numbers that have no logarithm."""
    role, name = spec.offset_role, spec.offset_column
    if role is None or name is None:
        return
    pointer = f"/{role}"
    if spec.exposure is not None and spec.offset is not None:
        yield Fault("/offset", "Rows have an exposure or an offset, not both: add its logarithm to the offset.")
    if Accepts.OFFSET not in entry_of(spec.algorithm).algorithm.accepts:
        yield Fault(pointer, f"{spec.algorithm.name} takes no {role}: leave it out, or take gradient_boosting.")
    if task is not None and not task.supervised:
        yield Fault(pointer, f"Only predictions of a target have an {role}; this is {task}.")
    if spec.preprocessing.target != "none":
        yield Fault("/preprocessing/target", f"With an {role} the target is learned as it is: leave this out.")
    if name in {spec.target, spec.weights, spec.sigma}:
        yield Fault(pointer, "The target or what weighs the rows cannot be part of the score too.")
    column = columns_by_name.get(name)
    if column is None:
        yield no_column(pointer, name, columns_by_name)
    elif column.kind != ColumnKind.NUMERIC:
        yield Fault(pointer, f"Numbers are needed; this column is {column.kind}.")
    else:
        yield from _value_faults(spec, column, columns_by_name, pointer)


def _value_faults(
    spec: TrainSpec, column: TableColumn, columns_by_name: Mapping[str, TableColumn], pointer: str
) -> Iterator[Fault]:
    target = columns_by_name.get(spec.target or "")
    if column.missing > (0 if target is None else target.missing):
        detail = (
            f"{column.missing} rows have no value in {column.name!r}, and every row that is learned from needs one."
        )
        yield Fault(pointer, detail, f"missing_{pointer[1:]}")
    if pointer == "/exposure" and column.minimum is not None and column.minimum <= 0:
        detail = f"{column.name!r} has values that are not above 0: a row without exposure shows nothing of a rate."
        yield Fault(pointer, detail, "bad_exposure")


def direction_faults(spec: TrainSpec) -> Iterator[Fault]:
    """Functions of columns beside columns with a direction: these would move with them."""
    directions = getattr(spec.algorithm, "monotone", {})
    if any(directions.values()) and spec.preprocessing.basis:
        yield Fault("/preprocessing/basis", "Functions would move with a column of `monotone`: leave them out.")
