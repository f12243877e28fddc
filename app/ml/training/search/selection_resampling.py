"""The same selection on random halves of the rows: which columns are selected again?

Halves rather than draws with replacement: a row that is drawn twice would stand on both sides of a fold.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from pydantic import Field

from app.base.errors import ValiantError
from app.base.wire import Wire
from app.ml.contract.algorithm import Each, Labels, in_turn
from app.ml.evaluation.splits import holdout
from app.ml.statistics.metric_value import Metric, proportion
from app.ml.statistics.selection_stability import selection_stability
from app.ml.training.search.column_selection import SelectionLimits, Strategy, path_of
from app.ml.training.search.column_subsets import ColumnSubsets


class ColumnFrequency(Wire):
    """A column, and the share of selections that have it."""

    column: str = Field(description="Name of the column.")
    chosen: bool = Field(description="True if the selection on all training rows has the column.")
    selected: Metric = Field(description="Share of the halves whose selection has the column.")


class SelectionStability(Wire):
    """Agreement of selections of the same number of columns on random halves of the training rows."""

    resamples: int = Field(description="Number of halves.")
    value: Metric = Field(
        description="1: every half selects the same columns; 0: they agree no more than columns drawn at random "
        "(Nogueira, Sechidis and Brown). Null value: all columns are selected always. The interval takes the halves "
        "for independent."
    )
    columns: list[ColumnFrequency] = Field(description="Every column, the most frequent first.")
    failed: int = Field(0, description="Number of halves on which no selection was possible.")


class _Chosen(NamedTuple):
    columns: Labels
    """Empty where the selection failed."""


class Repeated(NamedTuple):
    """The selection that is repeated."""

    strategy: Strategy
    step: int
    halves: int


def stability_of(
    repeated: Repeated, subsets: ColumnSubsets, chosen: list[int], each: Each, report: Callable[[float], None]
) -> SelectionStability | None:
    """Select as many columns as were chosen on halves of the rows; None if fewer than two halves could."""
    rngs = np.random.Generator(np.random.PCG64(subsets.spec.seed)).spawn(1 + repeated.halves)[1:]
    limits = SelectionLimits(len(chosen), len(chosen), repeated.step)
    selected = []
    tasks = [partial(_on_half, repeated.strategy, subsets, limits, rng) for rng in rngs]
    for place, chosen_columns in enumerate(each(_Chosen, tasks)):
        selected += [chosen_columns.columns] if chosen_columns.columns.size else []
        report((place + 1) / repeated.halves)
    if len(selected) < 2:
        return None
    indicators = np.array([np.isin(np.arange(len(subsets.names)), columns) for columns in selected])
    counts = indicators.sum(axis=0)
    return SelectionStability(
        resamples=len(selected),
        value=selection_stability(indicators),
        columns=[
            ColumnFrequency(
                column=subsets.names[place],
                chosen=place in chosen,
                selected=proportion("selected", int(counts[place]), len(selected)),
            )
            for place in np.argsort(-counts, kind="stable").tolist()
        ],
        failed=repeated.halves - len(selected),
    )


def _on_half(strategy: Strategy, subsets: ColumnSubsets, limits: SelectionLimits, rng: np.random.Generator) -> _Chosen:
    training_set, rows = subsets.training_set, subsets.rows
    strata = None if training_set.strata is None else training_set.strata[rows]
    half = rows[holdout(rows.size, 0.5, rng, strata, training_set.groups_among(rows)).train]
    folds = training_set.folds(half, len(subsets.splits), rng) if strategy != "recursive_elimination" else []
    try:
        path = path_of(strategy, subsets._replace(rows=half, splits=folds), limits, in_turn, lambda _: None)
    except ValiantError:
        return _Chosen(np.zeros(0, np.intp))
    return _Chosen(np.array(path.sets[-1], np.intp))
