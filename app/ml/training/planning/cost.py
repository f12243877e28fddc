"""Cost of a training, before any row is read: memory, seconds, and rows at a time where memory does not hold all."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from app.base.faults import Fault
from app.ml.catalogue import nested
from app.ml.contract.algorithm import Accepts, Size, Task
from app.ml.contract.columns import ColumnKind, TableColumn
from app.ml.contract.task import PredictionKind
from app.ml.numerics.clustering.validity import DISTANCES
from app.ml.training.planning.interval_folds import interval_folds
from app.ml.training.planning.train_spec import TrainSpec

BASE_BYTES, BASE_SECONDS = 180 << 20, 0.25
"""Memory and time of the training process before the first row, with its compiled code."""
ROW_BYTES, CLASS_BYTES = 250, 16
"""Memory of a row besides its columns: target, weight, hash, prediction and residual; and of each class more."""
INPUT_BYTES, COLUMN_BYTES = 16, 10
"""Memory of a cell: of the table and of the raw matrix; and of the matrix, of the rows to learn from and the others."""
INPUT_COPY_BYTES, COLUMN_COPY_BYTES = 6, 8
"""Memory of both more where all rows are prepared at once: copies on the way."""
RESTORED_BYTES = 12
"""Memory of a cell of a projection, whose metrics restore the rows from their coordinates."""
COMPARED_BYTES = 48 << 20
"""Memory of the distances that clusters are compared by."""
SPOOLED_ROW_BYTES = 24
"""Memory of a row whose matrix lies in a mapped file: its target and weights."""
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
    spec: TrainSpec,
    task: Task,
    chosen: Sequence[TableColumn],
    size: Size,
    *,
    units: int,
    memory_bytes: float,
    whole: bool = False,
) -> Cost:
    """Bytes that the process takes at most, and rough seconds: table, raw matrix, matrix, and what the fit takes.

    units: what splits divide, rows or groups. memory_bytes: above that the rows are learned in parts, if they can be.
    whole: the job holds all rows, whatever they take.
    """
    rows, width = int(size.rows), int(size.columns)
    restored = RESTORED_BYTES * (task.record.prediction is PredictionKind.COORDINATES)
    class_bytes = CLASS_BYTES * size.classes
    row_bytes = ROW_BYTES + class_bytes + INPUT_BYTES * len(chosen) + (COLUMN_BYTES + restored) * width
    fits = 3 if closed_form(spec, chosen) else spec.validation.fits(units)
    held_out = round(rows * spec.validation.held_out)
    fits += interval_folds(spec, task, rows - held_out, held_out)
    algorithm = nested.entry_of(spec.algorithm).algorithm
    passes = (spec.difficulty_stages + 1) / 2 if spec.difficulty is not None else 1.0
    each = _prepared(chosen, size) + passes * nested.seconds(algorithm, spec.algorithm, task, size)
    base = BASE_BYTES + COMPARED_BYTES * task.labels
    copies = INPUT_COPY_BYTES * len(chosen) + COLUMN_COPY_BYTES * width
    memory = base + (row_bytes + copies) * rows + nested.memory(algorithm, spec.algorithm, task, size)
    seconds = fits * each + _described(task, size)
    batch = max(FEWEST, BATCH_CELLS // max(width, len(chosen)))
    if whole or memory <= memory_bytes or rows <= HELD * batch or not _divisible(spec, task):
        return Cost(int(memory), round(BASE_SECONDS + seconds, 2), None)
    seconds = SECONDS_PER_STREAMED_CELL * size.cells * (1 + algorithm.passes(spec.algorithm))
    memory = base + row_bytes * HELD * batch
    in_batches = algorithm.update is not None
    held = size._replace(rows=batch) if in_batches or algorithm.fit_blocks is not None else size
    memory += nested.memory(algorithm, spec.algorithm, task, held)
    if not in_batches:
        seconds += nested.seconds(algorithm, spec.algorithm, task, size)
        memory += (SPOOLED_ROW_BYTES + class_bytes) * rows
    return Cost(int(memory), round(BASE_SECONDS + seconds, 2), batch)


def _divisible(spec: TrainSpec, task: Task) -> bool:
    """True if the rows of a table can be prepared part by part, each without the others."""
    algorithm = nested.entry_of(spec.algorithm).algorithm
    unlabelled = Accepts.UNLABELLED in nested.accepts(algorithm, spec.algorithm, task)
    return spec.relations is None and spec.item is None and not spec.preprocessing.text and not unlabelled


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


def memory_faults(cost: Cost, size: Size, memory_bytes: float, of_rows: Callable[[int], Cost]) -> Iterator[Fault]:
    """A training that does not fit into the memory of a job. of_rows: maps a number of rows to their cost."""
    if cost.memory_bytes <= memory_bytes:
        return
    rows = _most_rows(int(size.rows), memory_bytes, of_rows)
    help_ = f"at most {rows} rows fit, or take" if rows else "take fewer columns or categories,"
    yield Fault(
        "/algorithm",
        f"With {int(size.rows)} rows of {int(size.columns)} columns these parameters need about "
        f"{_written(cost.memory_bytes)} of memory and a job has {_written(memory_bytes)}: {help_} parameters that need "
        "less, or raise VALIANT_JOB_MEMORY_BYTES.",
        "too_large",
    )


def _most_rows(rows: int, memory_bytes: float, of_rows: Callable[[int], Cost]) -> int:
    """The most rows, to two digits, that fit; 0: not even a few do."""
    fit, beyond = 2, rows
    if of_rows(fit).memory_bytes > memory_bytes:
        return 0
    while beyond - fit > max(1, fit // 100):
        middle = (fit + beyond) // 2
        fit, beyond = (middle, beyond) if of_rows(middle).memory_bytes <= memory_bytes else (fit, middle)
    digit: int = 10 ** max(0, len(str(fit)) - 2)
    return fit // digit * digit


def _written(size: float) -> str:
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"


def closed_form(spec: TrainSpec, chosen: Sequence[TableColumn]) -> bool:
    """True if leave-one-out will hardly need a fit: see `app.ml.training.fitting.leave_one_out`."""
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
