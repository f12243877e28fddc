"""Rows of one dataset on which several model versions are compared: the same rows for all versions."""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from app.ml.contract.algorithm import JSON, Labels, Task
from app.ml.evaluation.holdout_reuse import held_out_by_all, whole, without
from app.ml.evaluation.report import Reuse
from app.ml.kinds.job import Loaded, Sheet
from app.ml.models import seen_rows
from app.ml.models.header import Header
from app.ml.preparation.target import Target
from app.ml.tables.casting import kinds_wanted, recast_columns, recast_table
from app.ml.training.versions.table_evaluation import only, read_truth, split_columns, trainings
from app.ml.training.versions.unseen_rows import NOT_KNOWN, Unseen, reuse_of, unseen


class VersionRows(NamedTuple):
    """The rows of a dataset that may evaluate one version."""

    table: pa.Table
    """All rows, in the columns and kinds that the version uses."""
    target: Target
    """Every row with a truth."""
    chosen: Unseen
    trained: bool
    """True if the version has learned from the dataset, and rows that it has seen are not left out."""
    training_rows: int | None
    """Rows with a truth that the training has seen; None: not known."""
    warnings: tuple[str, ...]
    reuse: Reuse | None

    def of(self, rows: Labels) -> Target:
        """The truth in these rows (m,) of the table, ascending."""
        return only(self.target, np.searchsorted(self.target.rows, rows))


def columns_of(header: Header, target: str | None, digest: str) -> list[str]:
    """Columns of the dataset that an evaluation of the version reads."""
    truth = [] if target is None else [target]
    splits = split_columns(trainings(header.receipt, digest))
    return [*dict.fromkeys([*(column.name for column in header.inputs), *truth, *splits])]


def rows_of(loaded: Loaded, sheet: Sheet, table: pa.Table, target: str | None, *, everything: bool) -> VersionRows:
    """table: the rows as the dataset has them. everything: leave out no row that the training has seen."""
    header, digest = loaded.version.header, sheet.digest
    used = recast_columns(sheet.columns, kinds_wanted(header, sheet.columns))
    table = recast_table(table.select(columns_of(header, target, digest)), used)
    truth, all_trainings = read_truth(header, target, table), trainings(header.receipt, digest)
    learned = all_trainings if target == truth_of(header) else []
    seen_rows = loaded.seen or ()
    chosen = unseen(learned, seen_rows, truth, table, truth=target, digest=digest, everything=everything)
    new = chosen.sealed or (not everything and bool(learned) and loaded.seen is not None)
    seen = _count(chosen, truth)
    return VersionRows(
        table=table,
        target=truth,
        chosen=chosen,
        trained=bool(all_trainings) and not new,
        training_rows=None if loaded.seen is None and not chosen.sealed else seen,
        warnings=(*_warnings(loaded, chosen, all_trainings, new=new, everything=everything),),
        reuse=reuse_of(header.receipt, digest, target, chosen, 0 if everything else seen)
        if new or not all_trainings
        else None,
    )


def truth_of(header: Header) -> str | None:
    """The column that the version predicts; None for a task without a target."""
    return header.target if Task(header.task).supervised else None


def common_rows(versions: Sequence[VersionRows]) -> Labels:
    """Row numbers that may evaluate every version, ascending."""
    rows: Labels = reduce(np.intersect1d, (version.chosen.target.rows for version in versions))
    return rows


def common_reuse(versions: Sequence[VersionRows], rows: Labels, digest: str, target: str | None) -> Reuse | None:
    """None where a version has learned from these rows: they hold nothing out."""
    first = versions[0].reuse
    if all(version.reuse == first for version in versions):
        return first
    if any(version.reuse is None for version in versions):
        return None
    if any(version.chosen.sealed for version in versions):
        return held_out_by_all(digest, target)
    left_out = versions[0].target.rows.size - rows.size
    return without(digest, target, left_out) if left_out else whole(digest, target)


def _count(chosen: Unseen, truth: Target) -> int:
    """Rows that the training has seen."""
    return truth.rows.size - chosen.target.rows.size if chosen.sealed else int(chosen.found.seen.sum())


def _warnings(
    loaded: Loaded, chosen: Unseen, all_trainings: Sequence[Mapping[str, JSON]], *, new: bool, everything: bool
) -> Iterator[str]:
    if not all_trainings or new:
        yield from seen_rows.warnings(chosen.found, left_out=not everything)
    if loaded.seen is None and not all_trainings:
        yield NOT_KNOWN
