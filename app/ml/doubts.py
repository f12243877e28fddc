"""Which rows of a raw matrix deserve doubt: values that training did not see."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import NamedTuple, Self

import numpy as np

from app.ml.contract import Labels, Matrix, Vector
from app.ml.learning import Truths
from app.ml.numerics.kernels.columns import outside
from app.ml.schema import InputColumn

CODES = "unseen_category", "outside_range", "imputed"
UNSEEN_CATEGORY, OUTSIDE_RANGE, IMPUTED, NO_DOUBT = 0, 1, 2, -1
BLOCK = 1 << 15
"""Numbers worked on at a time: what is made of them is still near when it is used."""


class Flagged(NamedTuple):
    """Rows whose answer deserves doubt."""

    code: str
    """One of `CODES`, undefined or unknown."""
    column: str | None
    """None: the row as a whole."""
    rows: Labels


@dataclass(frozen=True, slots=True)
class Doubts:
    """About the p inputs of a preparation."""

    inputs: Sequence[InputColumn]
    absent: Vector
    """(p,) the code of a value that is no level; NaN for numbers."""
    categories: bool
    """Whether any input is a category."""
    missing: Truths
    """(p,) whether a missing category has a level."""
    imputes: bool
    """Whether missing numbers are imputed."""
    first: Matrix
    """(1, p) what is less, more than `last`, or NaN, deserves a look: the range seen, the codes of levels."""
    last: Matrix

    @classmethod
    def about(cls, inputs: Sequence[InputColumn], absent: Vector, missing: Truths, *, imputes: bool) -> Self:
        ranges = [
            ((-inf if c.minimum is None else c.minimum), (inf if c.maximum is None else c.maximum))
            if c.levels is None
            else (0, len(c.levels) - 1)
            for c in inputs
        ]
        first, last = np.array(ranges, np.float64).T[:, None].copy()
        return cls(inputs, absent, not np.isnan(absent).all(), missing, imputes, first, last)

    def flags(self, raw: Matrix) -> tuple[Flagged, ...]:
        """Of a contiguous raw matrix (n, p): in the order of `CODES`, then by column, which rows, ascending."""
        inside = np.empty(raw.shape, bool)
        if outside.ready:
            found = outside.lean(raw, self.first, self.last, inside)
        else:
            np.greater_equal(raw, self.first, out=inside)
            inside &= raw <= self.last
            found = 0 in inside.tobytes()  # where numbers are few quicker than `all`
        return self.of(raw, inside) if found else ()

    def of(self, raw: Matrix, inside: Truths) -> tuple[Flagged, ...]:
        """As `flags`. inside: (n, p) which are where they should be, and need no look."""
        cells = (~inside).ravel().nonzero()[0]
        rows, places = np.divmod(cells, len(self.inputs))
        values = raw.ravel()[cells]
        empty = np.isnan(values)
        codes = np.where(empty, IMPUTED if self.imputes else NO_DOUBT, OUTSIDE_RANGE)
        if self.categories:
            absent = self.absent[places]
            unseen = (values == absent) | (empty & ~self.missing[places])
            codes = np.where(np.isnan(absent), codes, np.where(unseen, UNSEEN_CATEGORY, NO_DOUBT))
        keys = places + len(self.inputs) * codes
        order = keys.argsort(kind="stable")
        keys, rows = keys[order], rows[order]
        edges = [0, *((keys[1:] != keys[:-1]).nonzero()[0] + 1).tolist(), keys.size]
        return tuple(
            Flagged(CODES[key // len(self.inputs)], self.inputs[key % len(self.inputs)].name, rows[start:end])
            for (start, end), key in zip(pairwise(edges), keys[edges[:-1]].tolist(), strict=True)
            if key >= 0
        )


def blocks(rows: int, width: int) -> Iterator[slice]:
    step = max(1, BLOCK // max(1, width))
    return (slice(start, start + step) for start in range(0, rows, step))
