"""Cost of a training, before any row is read: memory, seconds, and rows at a time where memory does not hold all."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from app.faults import Fault
from app.ml import nested
from app.ml.contract.algorithm import Accepts, Size, Task
from app.ml.contract.columns import ColumnKind, TableColumn
from app.ml.contract.task import PredictionKind
from app.ml.numerics.clustering.validity import DISTANCES
from app.ml.training.train_spec import TrainSpec

BASE_BYTES, BASE_SECONDS = 150 << 20, 0.25
"""Memory and time of the training process before the first row."""
SECONDS_PER_CELL = 8e-8
"""Time of reading, preparation and metrics, per number of the matrix and for every fit."""
SECONDS_PER_COLUMN = 1e-4
"""Time of the preparation of a column, for every fit."""

BATCH_CELLS = 1 << 19
"""Numbers learned at a time where memory does not hold all."""
FEWEST = 1000
"""Rows learned at a time at least, however wide."""
HELD = 5
"""Batches held at once: rows held out, the sample, the batch, and copies on the way."""
HALVINGS, HALVED_ROWS = 10, 1000
"""Halvings of a clustering for its stability, and the most rows that are halved."""
SECONDS_PER_STREAMED_CELL = 4e-8
"""Time of one pass over a table that memory does not hold: mostly reading and preparing."""


TERMS = 100
"""Columns that a text counts for: sparse rows take the memory and time of their terms, not of the vocabulary."""


class Cost(NamedTuple):
    """Estimated cost of a training."""

    memory_bytes: int
    seconds: float
    batch_rows: int | None


def encoded_widths(spec: TrainSpec, task: Task | None, chosen: Sequence[TableColumn]) -> list[int]:
    """Columns of the matrix that stand for each: an indicator a level, where categories are not taken as such."""
    algorithm, how = nested.entry_of(spec.algorithm).algorithm, spec.preprocessing
    if task is not None and Accepts.CATEGORIES in nested.accepts(algorithm, spec.algorithm, task):
        return [1] * len(chosen)

    def width(column: TableColumn) -> int:
        if column.name in how.text:
            return TERMS
        levels = column.distinct or how.max_levels + 1
        if ColumnKind(column.kind).measured or (how.categories == "target" and levels > how.max_levels):
            return 1
        return min(how.max_levels, levels) + 1

    return [width(column) for column in chosen]


def cost_of(
    spec: TrainSpec, task: Task, chosen: Sequence[TableColumn], size: Size, *, units: int, memory_bytes: float
) -> Cost:
    """Rough bytes and seconds: the table, the raw matrix, the matrix and the fit's own copies of it.

    units: what splits divide, rows or groups.
    """
    rows, width = int(size.rows), int(size.columns)
    row_bytes = 8 * (2 * len(chosen) + 5 * width)
    fits = 3 if closed_form(spec, chosen) else spec.validation.fits(units)
    algorithm = nested.entry_of(spec.algorithm).algorithm
    passes = (spec.difficulty_stages + 1) / 2 if spec.difficulty is not None else 1.0
    each = _prepared(chosen, size) + passes * nested.seconds(algorithm, spec.algorithm, task, size)
    memory = BASE_BYTES + row_bytes * rows + int(algorithm.memory(spec.algorithm, size))
    seconds = fits * each + _described(task, size)
    batch = max(FEWEST, BATCH_CELLS // max(width, len(chosen)))
    in_parts = (algorithm.update is not None or algorithm.fit_blocks is not None) and not spec.preprocessing.text
    if not in_parts or memory <= memory_bytes or rows <= HELD * batch:
        return Cost(memory, round(BASE_SECONDS + seconds, 2), None)
    seconds = SECONDS_PER_STREAMED_CELL * size.cells * (1 + algorithm.passes(spec.algorithm))
    if algorithm.fit_blocks is not None:
        seconds += nested.seconds(algorithm, spec.algorithm, task, size)
    own = int(algorithm.memory(spec.algorithm, size._replace(rows=batch)))
    return Cost(BASE_BYTES + row_bytes * HELD * batch + own, round(BASE_SECONDS + seconds, 2), batch)


def _prepared(chosen: Sequence[TableColumn], size: Size) -> float:
    return SECONDS_PER_CELL * size.cells + SECONDS_PER_COLUMN * len(chosen)


def _described(task: Task, size: Size) -> float:
    """Seconds of silhouettes and cards of clusters, and of what a map keeps of a sample of rows."""
    if task.labels:
        return min(size.rows**2, DISTANCES) * (3e-8 + 3e-10 * size.columns) + 6e-4 * size.columns
    return 3e-4 * min(size.rows, 500) if task.record.prediction is PredictionKind.COORDINATES else 0.0


def halving_seconds(spec: TrainSpec, chosen: Sequence[TableColumn], task: Task, size: Size) -> float:
    """Seconds of the fits of halves by which a training measures the stability of clusters; 0 for other tasks."""
    if not task.labels:
        return 0.0
    learned = size.rows * (1 - spec.validation.held_out)
    half = size._replace(rows=max(1.0, min(learned, HALVED_ROWS) / 2))
    algorithm = nested.entry_of(spec.algorithm).algorithm
    each = _prepared(chosen, half) + nested.seconds(algorithm, spec.algorithm, task, half)
    return 2 * HALVINGS * each


def memory_faults(spec: TrainSpec, cost: Cost, size: Size, memory_bytes: float) -> Iterator[Fault]:
    """A fit, or a square table, that keeps more than grows with its rows, and does not fit."""
    own = nested.entry_of(spec.algorithm).algorithm.memory(spec.algorithm, size)
    square = spec.relations is not None and spec.relations.form == "square"
    if (own or square) and cost.memory_bytes > memory_bytes:
        yield Fault(
            "/algorithm",
            f"With {int(size.rows)} rows these parameters need about {cost.memory_bytes / 2**30:.1f} GiB of memory and "
            f"a job has {memory_bytes / 2**30:.1f}: take fewer rows, or parameters that need less.",
            "too_large",
        )


def closed_form(spec: TrainSpec, chosen: Sequence[TableColumn]) -> bool:
    """True if leave-one-out will hardly need a fit: see `app.ml.training.leave_one_out`."""
    form, how = nested.entry_of(spec.algorithm).algorithm.leave_one_out, spec.preprocessing
    return (
        spec.validation.method == "loo"
        and spec.validation.group is None
        and spec.class_weight is None
        and form is not None
        and not how.basis
        and not how.dates
        and not how.text
        and isinstance(how.imputation, str)
        and how.target == "none"
        and (how.scale == "none" or form.unscaled(spec.algorithm))
        and not any(column.missing for column in chosen if ColumnKind(column.kind).measured)
        and all(0 < (column.distinct or 0) <= how.max_levels for column in chosen if column.kind == "categorical")
    )
