"""Prepared rows beside memory: made once from the rows of a table, then read as often as a fit needs them."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from app.ml.contract.algorithm import Data, Matrix

SpoolRows: TypeAlias = Callable[[Iterator[Matrix]], Matrix]
"""Puts matrices below each other where they take no memory: `Source.spool_rows`."""


def prepared_rows(parts: Iterator[Data], sample: Data, rows: int, spool_rows: SpoolRows) -> Data:
    """The rows of `parts`, in their order: targets and weights in memory, the matrix beside it.

    sample: some of these rows, prepared alike. rows: number of all.
    """
    y, weights = np.empty(rows if sample.y.size else 0), np.empty(rows)
    codes = sample.task.of_classes or sample.targets.shape[1] > 1
    targets = np.empty((rows, sample.targets.shape[1])) if codes else y.reshape(rows, -1)

    def matrices() -> Iterator[Matrix]:
        start = 0
        for part in parts:
            span = slice(start, start + len(part.x))
            weights[span] = part.weights
            if y.size:
                y[span] = part.y
            if codes:
                targets[span] = part.targets
            start = span.stop
            yield part.x

    x = spool_rows(matrices())
    for array in (y, targets, weights):
        array.setflags(write=False)
    return replace(sample, x=x, y=y, targets=targets, weights=weights, numbers=None)
