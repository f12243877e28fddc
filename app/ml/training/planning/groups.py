"""Groups of rows that belong together: faults and facts of the column that names them."""

from collections.abc import Iterator, Mapping

from app.base.faults import Fault
from app.ml.contract.column_names import no_column
from app.ml.contract.columns import TableColumn
from app.ml.evaluation.validation import Validation

AT = "/validation/group"


def group_faults(how: Validation, columns_by_name: Mapping[str, TableColumn], target: str | None) -> Iterator[Fault]:
    if how.group is None:
        return
    column = columns_by_name.get(how.group)
    if column is None:
        yield no_column(AT, how.group, columns_by_name)
    elif how.group == target:
        yield Fault(AT, "The target cannot name the groups too: name another column.")
    elif column.distinct is not None and column.distinct + column.missing < 2:
        yield Fault(AT, "All rows are of one group, so none can be held out: name another column, or leave it out.")


def streaming_fault(how: Validation, batch_rows: int | None) -> Iterator[Fault]:
    """batch_rows: rows learned at a time, where memory does not hold all."""
    if how.group is not None and batch_rows is not None:
        detail = "The table is too large for the memory of a job, and is then split row by row, not by groups."
        yield Fault(AT, f"{detail} Set group to null, or raise VALIANT_JOB_MEMORY_BYTES.")


def group_warnings(
    how: Validation, columns_by_name: Mapping[str, TableColumn], features: tuple[str, ...]
) -> Iterator[str]:
    if how.group is None:
        return
    if how.group in features:
        yield (
            f"Column {how.group!r} names the groups and is a feature too: rows of new groups have values that the "
            "training rows lack."
        )
    if how.method == "kfold" and (count := groups_of(columns_by_name[how.group], how.folds)) < how.folds:
        yield f"Column {how.group!r} has {count} groups, fewer than the {how.folds} folds: there are {count} folds."


def units_of(how: Validation, columns_by_name: Mapping[str, TableColumn], rows: int) -> int:
    """Number of units that splits divide: the rows, or their groups."""
    return rows if how.group is None else min(rows, groups_of(columns_by_name[how.group], rows))


def groups_of(column: TableColumn, rows: int) -> int:
    """Groups of so many rows; a row without a value is a group of its own."""
    return rows if column.distinct is None else column.distinct + column.missing
