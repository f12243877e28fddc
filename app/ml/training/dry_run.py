"""Dry run of a training: the task, columns, memory, time and warnings that a request would have."""

from collections.abc import Mapping
from functools import partial

import numpy as np
from pydantic import Field

from app.base.errors import ValiantError
from app.ml.contract.algorithm import in_turn, silent
from app.ml.contract.given_kinds import KindName
from app.ml.contract.task import DESCRIPTION as TASK
from app.ml.evaluation import duplicates
from app.ml.kinds.job import Estimate, RowLook, Source
from app.ml.training.drawn_rows import draw
from app.ml.training.planning.plan import Plan


class TrainEstimate(Estimate):
    """Estimate of a training."""

    task: str = Field(description=TASK)
    features: list[str] = Field(description="Columns to learn from.")
    rows: int = Field(description="Number of rows.")
    memory_bytes: int = Field(description="Rough peak of the training process.")
    seconds: float = Field(description="Rough time from start to end.")


def estimate(planned: Plan, rows: int) -> TrainEstimate:
    """rows: of the dataset."""
    return TrainEstimate(
        task=planned.task,
        features=list(planned.features),
        rows=rows,
        memory_bytes=planned.memory_bytes,
        seconds=round(planned.seconds + planned.halvings, 2),
        warnings=list(planned.warnings),
    )


def row_look(planned: Plan, kinds: Mapping[str, KindName]) -> RowLook | None:
    """The warnings about rows that the report of this training would have, from rows of its dataset.

    kinds: as which its columns are used. Relations between the rows play no part in these. None: the training rests on
    more than these rows.
    """
    relations = planned.spec.relations
    if planned.projection is not None or (relations is not None and relations.form == "square"):
        return None
    alone = planned.spec.model_copy(update={"relations": None}) if relations else planned.spec
    return partial(_row_warnings, planned._replace(spec=alone, batch_rows=None), kinds)


def _row_warnings(planned: Plan, kinds: Mapping[str, KindName], source: Source) -> list[str]:
    """None of rows that cannot be used: the job names them."""
    rng, sheet = np.random.Generator(np.random.PCG64(planned.spec.seed)), source.sheet
    table = source.used_as(kinds).read()
    try:
        drawn = draw(planned, table, rng, silent, in_turn)
    except ValiantError:
        return []
    train, grouped = drawn.split.train.size, planned.spec.validation.group is not None
    warnings = [*drawn.warnings, *duplicates.warnings(drawn.equal, None, train, grouped=grouped)]
    if warnings and table.num_rows < sheet.rows:
        warnings.append(f"Rows were looked at in a sample, {table.num_rows} of {sheet.rows}: the report is about all.")
    return warnings
