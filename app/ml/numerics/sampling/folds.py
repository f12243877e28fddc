"""Rows dealt into folds, and predictions of rows by learners that have not seen them."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Context, Data, FittedLearner, Labels, Learner, NestedFit, Size


def dealt(n: int, folds: int, rng: np.random.Generator, codes: Labels | None = None) -> Labels:
    """(n,) the fold of each row, at random: like cards, class after class, so that folds differ by one at most."""
    strata = np.zeros(n, np.intp) if codes is None else np.asarray(codes, np.intp)
    order, _ = shuffled(strata, rng)
    fold = np.empty(n, np.intp)
    fold[order] = np.arange(n) % folds
    return fold


def shuffled(strata: Labels, rng: np.random.Generator) -> tuple[Labels, Labels]:
    """Rows stratum after stratum, at random within each; and the place of each row within its stratum."""
    mixed = rng.permutation(strata.size)
    order = mixed[np.argsort(strata[mixed], kind="stable")]
    starts = np.concatenate(([0], np.cumsum(np.bincount(strata))))
    return order, np.arange(strata.size) - starts[strata[order]]


def out_of_fold(
    data: Data, fold: Labels, specs: Sequence[Learner], context: Context
) -> Iterator[tuple[FittedLearner, NDArray[Any]]]:
    """Each learner, fitted on all rows, and the predictions of its likes, fitted on the rows of other folds only.

    Regression: (n,), classification: (n, k). Where all rows are in one fold there are no others to learn from: the
    learner has then seen them.
    """
    folds = [fold == k for k in range(int(fold.max()) + 1)]
    rests = [partial(data.take, ~rows) for rows in folds] if len(folds) > 1 else [lambda: data]
    learned = context.fit_all([NestedFit(spec, part) for spec in specs for part in (*rests, lambda: data)])
    for _ in specs:
        predictions = np.empty(data.prediction_shape)
        for rows in folds:
            predictions[rows] = next(learned).predict(np.ascontiguousarray(data.x[rows]))
        yield next(learned), predictions


def out_of_fold_fits(folds: int, size: Size) -> tuple[float, Size]:
    """Number of fits that `out_of_fold` makes of each learner, and their size."""
    return folds + 1, size._replace(rows=size.rows * folds / (folds + 1))
