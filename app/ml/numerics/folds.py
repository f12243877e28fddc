"""Rows dealt into folds, and answers for rows by learners that have not seen them."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.ml.contract import Data, Labels, Learned


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


def out_of_fold(data: Data, fold: Labels, fit: Callable[[Data], Learned]) -> NDArray[Any]:
    """What learners of one kind answer for every row, each having learned from the rows of the other folds only.

    Regression: (n,), classification: (n, k). Where all rows are in one fold there are no others to learn from: the
    learner has then seen them.
    """
    if not fold.any():
        return fit(data).predict(data.x)
    answers = np.empty(data.answer_shape)
    for k in range(int(fold.max()) + 1):
        learned = fit(data.take(fold != k))
        answers[fold == k] = learned.predict(np.ascontiguousarray(data.x[fold == k]))
    return answers
