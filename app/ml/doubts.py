"""Which rows of a raw matrix deserve doubt: values that training did not see."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import NamedTuple, Self

import numpy as np

from app.ml.contract import Labels, Matrix, Vector
from app.ml.learning import Truths
from app.ml.schema import InputColumn


class Flagged(NamedTuple):
    """Rows whose answer deserves doubt."""

    code: str
    """unseen_category, outside_range, imputed, undefined or unknown."""
    column: str | None
    """None: the row as a whole."""
    rows: Labels


@dataclass(frozen=True, slots=True)
class Doubts:
    """About the p inputs of a preparation."""

    inputs: Sequence[InputColumn]
    absent: Vector
    """(p,) the code of a value that is no level; NaN for numbers."""
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
        return cls(inputs, absent, missing, imputes, first, last)

    def flags(self, raw: Matrix) -> tuple[Flagged, ...]:
        """Of a raw matrix (n, p): by column which rows, ascending; `imputed` last."""
        above, below = raw >= self.first, raw <= self.last
        if 0 not in above.tobytes() and 0 not in below.tobytes():  # where numbers are few quicker than `all`
            return ()
        rows, places = np.divmod(np.flatnonzero(~(above & below)), len(self.inputs))
        cells, absent = raw[rows, places], self.absent[places]
        categorical, empty = ~np.isnan(absent), np.isnan(cells)
        doubts = {
            "unseen_category": categorical & ((cells == absent) | (empty & ~self.missing[places])),
            "outside_range": ~categorical & ~empty,
            "imputed": ~categorical & empty & self.imputes,
        }
        return tuple(
            flag for code, doubt in doubts.items() for flag in self._by_column(code, rows[doubt], places[doubt])
        )

    def _by_column(self, code: str, rows: Labels, places: Labels) -> Iterator[Flagged]:
        if rows.size:
            order = np.argsort(places, kind="stable")
            rows, places = rows[order], places[order]
            edges = [0, *(np.flatnonzero(np.diff(places)) + 1).tolist(), rows.size]
            for start, end in pairwise(edges):
                yield Flagged(code, self.inputs[places[start]].name, rows[start:end])
