"""Steps of a selection of columns, each with its metric and its difference from the columns chosen."""

from collections.abc import Iterator

import numpy as np
from pydantic import Field

from app.base.wire import Wire
from app.ml.contract.algorithm import Vector
from app.ml.statistics.metric_value import Metric, fold_mean
from app.ml.training.search.column_selection import SelectionPath
from app.ml.training.search.column_subsets import ColumnSubsets
from app.ml.training.search.selection_resampling import SelectionStability


def doubts(
    subsets: ColumnSubsets, score: Vector, stability: SelectionStability | None, *, higher: bool
) -> Iterator[str]:
    """Reasons to doubt a choice of columns. score: (folds,) of the columns chosen. higher: is better."""
    gain = fold_mean("gain", (score - subsets.constant_scores()) * (1 if higher else -1))
    if gain.lower is not None and gain.lower <= 0:
        yield (
            f"No column was chosen reliably: {subsets.metric} is not surely better with the chosen ones than without "
            f"any column (by {gain.display} over the folds)."
        )
    elif stability is not None and stability.value.lower is not None and stability.value.lower <= 0:
        yield (
            "No column was chosen reliably: halves of the rows may agree no more on the columns than by chance "
            f"(stability {stability.value.display})."
        )


class SelectionStep(Wire):
    """The best columns of one number that the strategy found."""

    columns: int = Field(description="Number of columns.")
    changed: list[str] = Field(description="Columns that this step added or left out; all, at the first step.")
    validation: Metric | None = Field(None, description="Mean of the metric over the folds; null: it is undefined.")
    folds: list[float | None] = Field([], description="Value of the metric, fold by fold.")
    behind: Metric | None = Field(
        None, description="Difference from the chosen columns, fold by fold, with its interval; null: these are they."
    )
    error: str | None = Field(None, description="Reason why there is no metric; null: there is one.")


def steps_of(path: SelectionPath, subsets: ColumnSubsets, chosen: list[int]) -> list[SelectionStep]:
    """The steps of a path. chosen: the set among its sets that the others are compared with."""
    steps, before = list[SelectionStep](), set[int]()
    best = path.scores[path.sets.index(chosen)].values
    for columns, score in zip(path.sets, path.scores, strict=True):
        sound = bool(score.values.size and np.isfinite(score.values).all())
        excess = score.values - best if sound and columns != chosen else None
        steps.append(
            SelectionStep(
                columns=len(columns),
                changed=[subsets.names[place] for place in sorted({*columns} ^ before)],
                validation=fold_mean(subsets.metric, score.values) if sound else None,
                folds=[float(value) if np.isfinite(value) else None for value in score.values],
                behind=None if excess is None else fold_mean(f"{subsets.metric}_difference", excess),
                error=score.error,
            )
        )
        before = {*columns}
    return steps
