"""Difficulty of rows: faults of the column by which rows are learned in stages, and its values."""

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from app.base.errors import InvalidData
from app.base.faults import Fault
from app.ml.catalogue import nested
from app.ml.catalogue.algorithm_files import catalogue
from app.ml.contract.algorithm import Labels
from app.ml.contract.column_names import no_column
from app.ml.contract.columns import ColumnKind, TableColumn
from app.ml.contract.difficulty_stages import Curriculum
from app.ml.preparation.arrow_columns import measured, pointer
from app.ml.training.planning.train_spec import TrainSpec

AT = "/difficulty"
SHOWN = 10
"""Faulty rows named in one refusal."""


def difficulty_faults(spec: TrainSpec, columns_by_name: Mapping[str, TableColumn]) -> Iterator[Fault]:
    """columns_by_name: columns by name."""
    name = spec.difficulty
    if name is None:
        return
    column, target = columns_by_name.get(name), columns_by_name.get(spec.target or "")
    without_target = target.missing if target is not None else 0
    if column is None:
        yield no_column(AT, name, columns_by_name)
    elif column.kind != ColumnKind.NUMERIC:
        yield Fault(AT, f"Numbers are needed, larger ones for harder rows; this column is {column.kind}.", "wrong_kind")
    elif name == spec.target:
        yield Fault(AT, "The target cannot order the rows too: name another column.")
    elif column.missing > without_target:
        yield Fault(
            AT,
            f"{column.missing} rows have no value in {name!r}, and every row that is learned from needs one: fill them "
            "in, or leave these rows out of the dataset.",
            "missing_difficulty",
        )
    yield from _learner_faults(spec)


def _learner_faults(spec: TrainSpec) -> Iterator[Fault]:
    in_stages = nested.entry_of(spec.algorithm).algorithm.in_stages
    if in_stages is None:
        able = ", ".join(name for name, entry in catalogue().items() if entry.algorithm.in_stages is not None)
        detail = f"{spec.algorithm.name} does not learn rows in an order. Algorithms that do: {able}."
        yield Fault(AT, detail, "not_offered")
        return
    for fault in in_stages(spec.algorithm):
        yield fault._replace(pointer=f"/algorithm{fault.pointer}")


def difficulty_streaming_fault(spec: TrainSpec, batch_rows: int | None) -> Iterator[Fault]:
    """batch_rows: rows learned at a time, where memory does not hold all."""
    if spec.difficulty is not None and batch_rows is not None:
        detail = "The table is too large for the memory of a job, and is then learned in batches, not by difficulty."
        yield Fault(AT, f"{detail} Set difficulty to null, or raise VALIANT_JOB_MEMORY_BYTES.")


def read_curriculum(table: pa.Table, spec: TrainSpec, rows: Labels) -> Curriculum | None:
    """Difficulty of these rows. Raises InvalidData where it is missing or infinite."""
    if spec.difficulty is None:
        return None
    difficulty = measured(table.column(spec.difficulty), spec.difficulty)[rows]
    lacking = rows[np.isnan(difficulty)]
    if lacking.size:
        raise InvalidData(
            f"{lacking.size} of {rows.size} rows have no value in {spec.difficulty!r}, by which they are learned.",
            faults=[
                Fault(pointer(row, spec.difficulty), "A number is needed.", "missing_difficulty")
                for row in lacking[:SHOWN].tolist()
            ],
        )
    return Curriculum(difficulty, spec.difficulty_stages)
