"""Selection of columns: forward, backward and by recursive elimination, on the same folds (LION 7.1).

Forward selection starts with the best single column and adds the one that validates best, one after the other.
Backward elimination starts with all and leaves out the one without which the rest validates best. Recursive
elimination fits all, leaves out the columns of least importance, and repeats; each fold has an elimination of its own,
so that its test rows decide on the number of columns only. Ties go to the column that comes first.

References: Guyon, Weston, Barnhill & Vapnik (2002), Machine Learning 46:389, for recursive elimination; Kohavi & John
(1997), Artificial Intelligence 97:273, for wrappers.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from app.base.errors import InvalidData, ValiantError
from app.ml.contract.algorithm import Each, Labels, Vector
from app.ml.training.search.column_subsets import ColumnSubsets, SubsetScore
from app.ml.training.search.search import cost_of, order_of, standard_error

Strategy: TypeAlias = Literal["forward", "backward", "recursive_elimination"]
Rule: TypeAlias = Literal["best", "one_standard_error"]


class SelectionPath(NamedTuple):
    """The best set of each size that a strategy found, and how it validates."""

    sets: list[list[int]]
    """Places of the columns, ascending."""
    scores: list[SubsetScore]


class SelectionLimits(NamedTuple):
    fewest: int
    most: int
    step: int = 1
    """Columns that recursive elimination leaves out at a time."""

    def sizes(self, columns: int) -> list[int]:
        """Numbers of columns that recursive elimination passes, from all down to the fewest."""
        sizes = [columns]
        while sizes[-1] > self.fewest:
            sizes.append(max(self.fewest, sizes[-1] - self.step))
        return sizes


def fits_of(strategy: Strategy, columns: int, limits: SelectionLimits, folds: int) -> int:
    """Number of fits that a path takes."""
    if strategy == "recursive_elimination":
        return len(limits.sizes(columns)) * (folds + 1)
    if strategy == "forward":
        return folds * sum(columns - size for size in range(limits.most))
    return folds * (1 + sum(range(limits.fewest + 1, columns + 1)))


def path_of(
    strategy: Strategy, subsets: ColumnSubsets, limits: SelectionLimits, each: Each, report: Callable[[int], None]
) -> SelectionPath:
    """All steps of a strategy. report: gets the number of columns of each. Raises InvalidData where no fit succeeds."""
    if strategy == "recursive_elimination":
        return _eliminated(subsets, limits, each, report)
    grow, d = strategy == "forward", len(subsets.names)
    columns: list[int] = [] if grow else [*range(d)]
    path = SelectionPath([], [])
    if not grow:
        path.sets.append(columns)
        path.scores.append(subsets.score(columns))
    for _ in range(limits.most if grow else d - limits.fewest):
        places = [place for place in range(d) if place not in columns] if grow else columns
        tried = [sorted({*columns} ^ {place}) for place in places]
        tried_scores = list(each(SubsetScore, [partial(subsets.score, columns_tried) for columns_tried in tried]))
        best = int(order_of(np.array([_cost(subsets, score) for score in tried_scores]))[0])
        columns = tried[best]
        path.sets.append(columns)
        path.scores.append(tried_scores[best])
        report(len(columns))
    return path


def chosen_size(path: SelectionPath, subsets: ColumnSubsets, limits: SelectionLimits, rule: Rule) -> int:
    """Place of the set that the rule chooses among those of an allowed size; the smallest of equals.

    one_standard_error: the smallest whose mean is within one standard error of the best.
    """
    allowed = [place for place, columns in enumerate(path.sets) if limits.fewest <= len(columns) <= limits.most]
    places = sorted(allowed, key=lambda place: len(path.sets[place]))
    cost = np.array([_cost(subsets, path.scores[place]) for place in places])
    if not np.isfinite(cost).any():
        errors = [path.scores[place].error for place in places if path.scores[place].error]
        raise InvalidData(errors[0] or "" if errors else f"No set of columns has a defined {subsets.metric} here.")
    best = int(order_of(cost)[0])
    if rule == "best":
        return places[best]
    limit = cost[best] + standard_error(path.scores[places[best]].values)
    return places[int(np.flatnonzero(cost <= limit)[0])]


class _Eliminated(NamedTuple):
    sets: list[Labels]
    values: Vector
    """(sizes,) metric of the rows held out."""
    error: str | None = None


def _eliminated(
    subsets: ColumnSubsets, limits: SelectionLimits, each: Each, report: Callable[[int], None]
) -> SelectionPath:
    sizes = limits.sizes(len(subsets.names))
    tasks = [partial(_of_fold, subsets, sizes, place) for place in range(-1, len(subsets.splits))]
    (whole, *folds) = each(_Eliminated, tasks)
    report(sizes[-1])
    error = next((outcome.error for outcome in (whole, *folds) if outcome.error), None)
    if error is not None:
        raise InvalidData(error)
    values = np.array([fold.values for fold in folds]).reshape(-1, len(sizes))
    return SelectionPath([columns.tolist() for columns in whole.sets], [SubsetScore(column) for column in values.T])


def _of_fold(subsets: ColumnSubsets, sizes: Sequence[int], place: int) -> _Eliminated:
    """place: of the fold; -1: all rows, and none is held out."""
    split = None if place < 0 else subsets.splits[place]
    rows = subsets.rows if split is None else subsets.rows[split.train]
    columns, sets, values = np.arange(len(subsets.names)), [], []
    try:
        for size in sizes:
            if size < columns.size:
                columns = _kept(columns, subsets.weights(columns.tolist(), rows), size)
            sets.append(columns)
            values.append(np.nan if split is None else subsets.fold_score(subsets.of(columns.tolist()), split))
    except ValiantError as error:
        return _Eliminated([], np.zeros(0), error.detail)
    return _Eliminated(sets, np.array(values))


def _kept(columns: Labels, weights: Vector, size: int) -> Labels:
    """The columns of the largest weights, ascending; of equal ones those that come first."""
    return np.sort(columns[np.argsort(-weights, kind="stable")[:size]])


def _cost(subsets: ColumnSubsets, score: SubsetScore) -> float:
    return cost_of(subsets.metric, float(score.values.mean())) if score.values.size else np.nan
