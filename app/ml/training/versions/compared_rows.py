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
    return [*dict.fromkeys([*(one.name for one in header.inputs), *truth, *splits])]


def rows_of(loaded: Loaded, sheet: Sheet, table: pa.Table, target: str | None, *, everything: bool) -> VersionRows:
    """table: the rows as the dataset has them. everything: leave out no row that the training has seen."""
    header, digest = loaded.version.header, sheet.digest
    used = recast_columns(sheet.columns, kinds_wanted(header, sheet.columns))
    table = recast_table(table.select(columns_of(header, target, digest)), used)
    truth, own = read_truth(header, target, table), trainings(header.receipt, digest)
    learned = own if target == truth_of(header) else []
    known = loaded.seen or ()
    chosen = unseen(learned, known, truth, table, truth=target, digest=digest, everything=everything)
    new = chosen.sealed or (not everything and bool(learned) and loaded.seen is not None)
    seen = _count(chosen, truth)
    return VersionRows(
        table=table,
        target=truth,
        chosen=chosen,
        trained=bool(own) and not new,
        training_rows=None if loaded.seen is None and not chosen.sealed else seen,
        warnings=(*_warnings(loaded, chosen, own, new=new, everything=everything),),
        reuse=reuse_of(header.receipt, digest, target, chosen, 0 if everything else seen) if new or not own else None,
    )


def truth_of(header: Header) -> str | None:
    """The column that the version predicts; None for a task without a target."""
    return header.target if Task(header.task).supervised else None


def common_rows(found: Sequence[VersionRows]) -> Labels:
    """Row numbers that may evaluate every version, ascending."""
    rows: Labels = reduce(np.intersect1d, (one.chosen.target.rows for one in found))
    return rows


def common_reuse(found: Sequence[VersionRows], rows: Labels, digest: str, target: str | None) -> Reuse | None:
    """None where a version has learned from these rows: they hold nothing out."""
    first = found[0].reuse
    if all(one.reuse == first for one in found):
        return first
    if any(one.reuse is None for one in found):
        return None
    if any(one.chosen.sealed for one in found):
        return held_out_by_all(digest, target)
    left_out = found[0].target.rows.size - rows.size
    return without(digest, target, left_out) if left_out else whole(digest, target)


def _count(chosen: Unseen, truth: Target) -> int:
    """Rows that the training has seen."""
    return truth.rows.size - chosen.target.rows.size if chosen.sealed else int(chosen.found.seen.sum())


def _warnings(
    loaded: Loaded, chosen: Unseen, own: Sequence[Mapping[str, JSON]], *, new: bool, everything: bool
) -> Iterator[str]:
    if not own or new:
        yield from seen_rows.warnings(chosen.found, left_out=not everything)
    if loaded.seen is None and not own:
        yield NOT_KNOWN
