"""Checks of the rows of a training before it is fitted: columns that leak the target, groups, rare classes.

A dry run and a report share them. Columns are checked in a random sample of at most `MAX_CHECKED_ROWS` rows, groups in
at most `MAX_COMPARED_ROWS`, whatever the size of the table, so that time and memory are bounded. They draw from a
generator that nothing else draws from: a model has the same bytes with and without them.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.ml.contract.algorithm import Labels, Matrix
from app.ml.contract.columns import ColumnKind, TableColumn
from app.ml.evaluation.leaking_columns import (
    CheckedColumn,
    CheckedTarget,
    copy_warnings,
    determined_warnings,
    identifier_warnings,
    late_warnings,
    listed,
)
from app.ml.evaluation.like_groups import MIN_GROUPS, Likeness, drawn_groups, likeness
from app.ml.evaluation.near_duplicates import near_duplicates
from app.ml.evaluation.splits import Split
from app.ml.evaluation.sums_of_columns import sum_warnings
from app.ml.numerics.dependence.correlation import ranks
from app.ml.preparation.arrow_columns import Cells, Raw, RawColumn
from app.ml.training.planning.plan import Plan
from app.ml.training.rows.training_set import TrainingSet

EXACT = 2.0**53
"""Up to here every whole number is a float of 64 bits."""
MAX_CHECKED_ROWS, MAX_CHECKED_CELLS = 10_000, 2_000_000
MIN_SAMPLED_ROWS = 200
"""Rows of a sample of a very wide table."""
MAX_CANDIDATES = 10
"""Columns whose groups are compared."""
MAX_MEAN_GROUP_ROWS = 500
"""Values of a column with more rows to a value are categories, unless its name is one of groups."""
MAX_CATEGORIES = 50
"""A column of more categories plays no part in the likeness of rows."""
MAX_RARE_SHARE = 0.01
"""A class with a smaller share of the rows is rare, if it has less than a fifth of an equal share too."""
NAMED_CLASSES = 10
GROUP_WORDS = frozenset(
    {
        *("account", "batch", "building", "case", "client", "customer", "device", "donor", "family", "firm", "group"),
        *("household", "id", "individual", "machine", "member", "patient", "participant", "person", "plant", "school"),
        *("sensor", "session", "site", "station", "store", "student", "subject", "unit", "user", "vehicle"),
    }
)
"""Last words of names of columns whose values have several rows each."""
STREAM = 0x1EA4
"""Number of the stream of random numbers."""


def row_warnings(planned: Plan, table: pa.Table, training_set: TrainingSet, split: Split) -> list[str]:
    """Sentences on what a careful reader should know of the rows before they are learned from."""
    rng = np.random.Generator(np.random.PCG64([planned.spec.seed, STREAM]))
    warnings = [*_rare_classes(training_set), *_lost_digits(planned, table)]
    checks = _RowChecks(planned, table, training_set, rng)
    if planned.spec.relations is not None and planned.spec.relations.form == "square":
        return warnings
    warnings += checks.leaks()
    validation = planned.spec.validation
    is_split = split.test.size > 0 or validation.method != "holdout"
    if planned.target is not None and is_split and validation.time is None and validation.group is None:
        warnings += [*checks.near_copies(), *checks.groups(planned.target)]
    return warnings


class _RowChecks(NamedTuple):
    planned: Plan
    table: pa.Table
    training_set: TrainingSet
    rng: np.random.Generator

    def leaks(self) -> Iterator[str]:
        """Warnings about single columns."""
        planned, training_set = self.planned, self.training_set
        inputs = [column for column in planned.inputs if column.kind is not ColumnKind.TEXT]
        rows = _sampled(training_set.rows, len(inputs), self.rng)
        columns = self._columns(inputs, rows)
        if planned.target is not None:
            target = CheckedTarget.of(planned.target, training_set.target.y[rows], classes=training_set.task.of_classes)
            copies = dict(copy_warnings(columns, target))
            yield from copies.values()
            others = [column for column in columns if column.name not in copies]
            yield from determined_warnings(others, target, self.rng)
            yield from sum_warnings(others, target)
            time = [column for column in planned.columns if column.name == planned.spec.validation.time]
            timed = self._columns([RawColumn(column.name, ColumnKind(column.kind)) for column in time], rows)
            yield from late_warnings(columns, next(iter(timed), None))
        flagged = {column.name for column in planned.columns if column.identifier_like}
        yield from identifier_warnings([column for column in columns if column.name not in flagged], planned.rows)

    def near_copies(self) -> Iterator[str]:
        """A warning of rows that are others but for a little noise, on both sides of a split row by row."""
        training_set = self.training_set
        inputs = [column for column in self.planned.inputs if column.kind is not ColumnKind.TEXT]
        rows = _sampled(training_set.rows, len(inputs), self.rng)
        x = np.hstack([np.zeros((rows.size, 1)), *map(_block, self._columns(inputs, rows))])
        near = near_duplicates(x, training_set.target.y[rows], self.rng, classes=training_set.task.of_classes)
        if near is not None and near.is_notable:
            yield (
                f"{near.rows} of {near.compared} rows compared are another row but for a little noise: far nearer to "
                "it than to any other, with the same target. If these are copies, the metrics are optimistic: remove "
                "them from the dataset, or name the column of such groups in validation.group."
            )

    def groups(self, target: str) -> Iterator[str]:
        """A warning of the column whose groups are most alike."""
        likenesses: dict[str, Likeness] = {}
        for column in _candidates(self.planned):
            codes = _group_codes(self.table.column(column.name), self.training_set.target.rows)
            alike = None if codes is None else self._likeness(column.name, codes)
            if alike is not None and alike.is_notable(named=_is_named(column.name)):
                likenesses[column.name] = alike
        if likenesses:
            name, *others = sorted(likenesses, key=lambda name: (not _is_named(name), -likenesses[name].likeness))
            alike, like_it = likenesses[name], listed([*map(repr, others)])
            yield (
                f"Rows with the same value of {name!r} are alike: of {alike.same:.0%} of the rows compared the row "
                f"nearest in the other columns has it too, {alike.chance:.0%} by chance, and it explains "
                f"{alike.target:.0%} of the variation of the target {target!r}. A split row by row puts such rows on "
                "both sides, and its metrics are optimistic for rows of other values: set validation.group to "
                f"{name!r}{f', or to one of {like_it}, whose rows are alike too' if others else ''}."
            )

    def _columns(self, columns: Sequence[RawColumn], rows: Labels) -> list[CheckedColumn]:
        """The columns in some of the training set's rows."""
        places = pa.array(self.training_set.target.rows[rows])
        raw = Raw.read(self.table.select([column.name for column in columns]).take(places), columns)
        return [CheckedColumn(column.name, column.kind, raw.values[:, j]) for j, column in enumerate(raw.columns)]

    def _likeness(self, name: str, codes: Labels) -> Likeness | None:
        """codes: of the groups of all rows."""
        rows, kinds = drawn_groups(codes, self.rng), {ColumnKind.TEXT}
        inputs = [column for column in self.planned.inputs if column.name != name and column.kind not in kinds]
        if not rows.size:
            return None
        blocks = [np.zeros((rows.size, 1)), *map(_block, self._columns(inputs, rows))]
        y, classes = self.training_set.target.y[rows], self.training_set.task.of_classes
        return likeness(codes[rows], np.hstack(blocks), y if classes else ranks(y), self.rng, classes=classes)


def _sampled(rows: int, columns: int, rng: np.random.Generator) -> Labels:
    """Numbers of some of the rows, ascending."""
    count = min(rows, MAX_CHECKED_ROWS, max(MIN_SAMPLED_ROWS, MAX_CHECKED_CELLS // max(1, columns)))
    return np.arange(rows) if count == rows else np.sort(rng.choice(rows, count, replace=False))


def _candidates(planned: Plan) -> list[TableColumn]:
    """Columns with several rows to a value, those with a name of groups first."""
    spec, kinds = planned.spec, {ColumnKind.NUMERIC, ColumnKind.CATEGORICAL, ColumnKind.TEXT}
    others = {spec.target, spec.weights, spec.sigma, spec.item, spec.difficulty}
    able = [column for column in planned.columns if column.kind in kinds and column.name not in others]
    able = [column for column in able if _has_groups(column, planned.rows)]
    return sorted(able, key=lambda column: (not _is_named(column.name), -(column.distinct or 0)))[:MAX_CANDIDATES]


def _has_groups(column: TableColumn, rows: int) -> bool:
    if column.distinct is None:
        return _is_named(column.name)
    fewest = 0 if _is_named(column.name) else rows / MAX_MEAN_GROUP_ROWS
    return max(MIN_GROUPS, fewest) <= column.distinct <= rows / 2


def _is_named(name: str) -> bool:
    words = [word.lower().removesuffix("s") for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)]
    return bool(words) and words[-1] in GROUP_WORDS


def _group_codes(cells: Cells, rows: Labels) -> Labels | None:
    """(n,) codes of the values of these rows, -1 where missing; None of numbers that are not whole."""
    cells = cells.take(pa.array(rows))
    if pa.types.is_floating(cells.type) and not pc.all(pc.equal(cells, pc.floor(cells))).as_py():
        return None
    coded = pa.chunked_array(cells).combine_chunks().dictionary_encode()
    codes: Labels = pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False).astype(np.intp)
    return codes


def _block(column: CheckedColumn) -> Matrix:
    """(m, k) columns in which two rows differ about as much by this column as by any other; k is 0 for a constant."""
    x, there = column.values, column.there
    if column.kind is ColumnKind.CATEGORICAL:
        values, codes = np.unique(x, return_inverse=True)
        return np.eye(values.size)[codes] if 1 < values.size <= MAX_CATEGORIES else np.zeros((x.size, 0))
    deviation = float(np.std(x[there])) if there.any() else 0.0
    if deviation == 0:
        return np.zeros((x.size, 0))
    return np.asarray(np.where(there, (x - x[there].mean()) / deviation, 0.0)[:, None])


def _rare_classes(training_set: TrainingSet) -> Iterator[str]:
    if training_set.target.codes is None:
        return
    counts = np.bincount(training_set.target.codes, minlength=len(training_set.classes))
    rare = np.flatnonzero(counts < min(MAX_RARE_SHARE, 0.2 / counts.size) * counts.sum())
    if rare.size:
        named = [f"{training_set.classes[code]!r} ({_rows(counts[code])})" for code in rare[:NAMED_CLASSES].tolist()]
        more = f" and {rare.size - NAMED_CLASSES} more" if rare.size > NAMED_CLASSES else ""
        yield (
            f"Classes with less than 1 % of {counts.sum()} rows: {', '.join(named)}{more}. Accuracy hardly depends on "
            "them: look at their recall and precision, and set class_weight to balanced, join them with another class, "
            "or add rows of them."
        )


def _lost_digits(planned: Plan, table: pa.Table) -> Iterator[str]:
    used = {*planned.features, planned.target, planned.spec.weights, planned.spec.sigma}
    rounded = [column.name for column in planned.columns if column.name in used and _is_rounded(column, table)]
    if rounded:
        yield (
            f"Whole numbers beyond 2⁵³ lose digits in the fit, and several of them become one: {listed(rounded)}. If "
            'they are identifiers, leave them out, or use them as categories ("kinds"); if not, subtract a constant.'
        )


def _is_rounded(column: TableColumn, table: pa.Table) -> bool:
    """True of a column of whole numbers some of which a float of 64 bits does not hold."""
    if ColumnKind(column.kind) is not ColumnKind.NUMERIC or column.name not in table.column_names:
        return False
    cells = table.column(column.name)
    if not pa.types.is_integer(cells.type):
        return False
    ends = [column.minimum, column.maximum, *pc.min_max(cells).as_py().values()]
    return any(abs(end) > EXACT for end in ends if end is not None)


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"
