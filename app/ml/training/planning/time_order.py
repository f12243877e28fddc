"""Splits in order of time: faults and facts of the column of times."""

from collections.abc import Iterator, Mapping

from app.base.faults import Fault
from app.ml.contract.column_names import no_column
from app.ml.contract.columns import ColumnKind, TableColumn
from app.ml.evaluation.validation import Validation

AT = "/validation/time"


def time_faults(how: Validation, columns_by_name: Mapping[str, TableColumn], target: str | None) -> Iterator[Fault]:
    if how.time is None:
        return
    column = columns_by_name.get(how.time)
    if column is None:
        yield no_column(AT, how.time, columns_by_name)
    elif column.kind not in {ColumnKind.DATETIME, ColumnKind.NUMERIC}:
        yield Fault(AT, f"Rows are ordered by dates or numbers; this column is {column.kind}.", "wrong_kind")
    elif how.time == target:
        yield Fault(AT, "The target cannot order the rows too: name another column.")
    elif column.missing:
        yield Fault(AT, f"{column.missing} rows lack a value in this column, by which they are to be ordered.")
    elif column.distinct == 1:
        yield Fault(AT, "All rows are of one time, so none is later: name another column, or leave it out.")
    if how.group is not None:
        yield Fault(AT, "Rows are split by groups or in order of time, not both: leave out one of them.")
    if how.method in {"loo", "bootstrap"}:
        yield Fault(
            "/validation/method", f"In order of time rows are validated by holdout or kfold, not by {how.method}."
        )


def time_streaming_fault(how: Validation, batch_rows: int | None) -> Iterator[Fault]:
    """batch_rows: rows learned at a time, where memory does not hold all."""
    if how.time is not None and batch_rows is not None:
        detail = "The table is too large for the memory of a job, and is then split at random, not in order of time."
        yield Fault(AT, f"{detail} Set time to null, or raise VALIANT_JOB_MEMORY_BYTES.")
