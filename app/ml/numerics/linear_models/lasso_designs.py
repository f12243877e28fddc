"""The problems of a lasso: that of all rows, and those of folds, by sums of products or by the rows themselves."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np

from app.ml.contract.algorithm import Data, Labels
from app.ml.contract.sparse_rows import sparse
from app.ml.numerics.linear_algebra.solve import centred
from app.ml.numerics.linear_models.fold_sums import Point, Sums, mean_point
from app.ml.numerics.linear_models.lasso_path import Problem
from app.ml.numerics.linear_models.lasso_rows import LassoRows

MAX_PRODUCT_COLUMNS = 1000
"""Columns up to which products of all of them are computed, if there are as many rows."""
MAX_SPARSE_COLUMNS = 3_000
"""The same of sparse rows, however many there are."""


class Design(NamedTuple):
    """Rows ready for the solver."""

    problem: Problem
    means: Point
    """Means of inputs and target; zero if there is no free intercept."""
    weight: float
    """Sum of the row weights."""


Fold: TypeAlias = tuple[Labels, Callable[[], Design]]
"""Rows left out, and the others."""


def designs(data: Data, left: Sequence[Labels], *, free: bool, pulled: bool) -> tuple[Design, list[Fold]]:
    """All rows, and the folds for the rows left out.

    free: there is an intercept without a penalty. pulled: there is one that counts as a coefficient, the last.
    """
    n, d = data.x.shape
    # Products of all columns would cost more than paths on few of them.
    by_rows = sparse(data.x) is None and d > min(n, MAX_PRODUCT_COLUMNS)
    return (_of_rows if by_rows else _of_sums)(data, left, free, pulled)


def _of_sums(data: Data, left: Sequence[Labels], free: bool, pulled: bool) -> tuple[Design, list[Fold]]:
    """By sums that the folds have in common."""
    origin = mean_point(data) if free else Point(np.zeros(data.x.shape[1]), 0.0)
    parts = [Sums.of(data, origin, rows) for rows in left] or [Sums.of(data, origin)]

    def joined(chosen: Sequence[Sums]) -> Design:
        sums = Sums.union(chosen)
        if free:
            return Design(*sums.centred(origin), sums.weight)
        return Design(sums.with_constant() if pulled else sums.moments(), origin, sums.weight)

    return joined(parts), [(rows, partial(joined, parts[:k] + parts[k + 1 :])) for k, rows in enumerate(left)]


def _of_rows(data: Data, left: Sequence[Labels], free: bool, pulled: bool) -> tuple[Design, list[Fold]]:
    everything = np.arange(len(data.x))

    def without(rows: Labels) -> Design:
        remaining = data.take(np.setdiff1d(everything, rows)) if len(rows) else data
        x, y, weights, means = remaining.x, remaining.y, remaining.weights, Point(np.zeros(remaining.x.shape[1]), 0.0)
        if free:
            inputs, target = centred(x, weights), centred(y[:, None], weights)
            x, y, means = inputs.x, target.x[:, 0], Point(inputs.mean, float(target.mean[0]))
        elif pulled:
            x = np.column_stack([x, np.ones(len(x))])
        return Design(LassoRows.of(x, y, weights), means, float(weights.sum()))

    return without(everything[:0]), [(rows, partial(without, rows)) for rows in left]
