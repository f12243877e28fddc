"""Rows sorted by class, so that those of one class are consecutive columns of a block of distances."""

from collections.abc import Iterator
from typing import NamedTuple, Self

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector

BLOCK = 1 << 18
"""Distances worked on at a time."""


class ClassRows(NamedTuple):
    """Rows sorted by class."""

    x: Matrix
    """(n, d)"""
    weights: Vector
    """(n,) with a mean of 1."""
    ends: Labels
    """(k,) end of each class among the rows, all with at least one."""

    @classmethod
    def of(cls, x: Matrix, codes: Labels, weights: Vector) -> Self:
        order = np.argsort(codes, kind="stable")
        counts = np.bincount(codes)
        return cls(np.ascontiguousarray(x[order]), weights[order] / weights.mean(), np.cumsum(counts[counts > 0]))

    @property
    def classes(self) -> Iterator[slice]:
        """Rows of each class."""
        start = 0
        for end in self.ends.tolist():
            yield slice(start, end)
            start = end

    def blocks(self) -> Iterator[tuple[slice, slice]]:
        """Rows of one class, few enough for their distances from all rows, and all rows of that class."""
        step = max(1, BLOCK // len(self.x))
        for class_rows in self.classes:
            for start in range(class_rows.start, class_rows.stop, step):
                yield slice(start, min(start + step, class_rows.stop)), class_rows
