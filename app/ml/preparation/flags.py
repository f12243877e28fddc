"""Flags of rows whose prediction is doubtful: values that training did not see."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple, Self

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.contract.columns import InputColumn
from app.ml.preparation.compiled.columns import (
    EMPTY,
    KINDS_OF_DOUBT,
    NO_CATEGORY,
    NO_NUMBER,
    OUTSIDE,
    UNSEEN,
    grouped,
    outside,
    repeated,
)
from app.ml.preparation.state import Truths

CODES = {
    UNSEEN: "unseen_category",
    NO_CATEGORY: "missing_category",
    OUTSIDE: "outside_range",
    NO_NUMBER: "missing_number",
    EMPTY: "imputed",
}
NO_KNOWN_TERM = "no_known_term"
"""Code of a text without a term that the model knows."""
NO_DOUBT = -1


class Flagged(NamedTuple):
    """Rows whose prediction is doubtful."""

    code: str
    """One of `CODES`, `NO_KNOWN_TERM`, undefined or unknown."""
    column: str | None
    """None: the row as a whole."""
    rows: Labels

    @property
    def text(self) -> str:
        """Its code, and the column after a colon."""
        return self.code if self.column is None else f"{self.code}:{self.column}"


def flag_texts(flags: Sequence[Flagged], rows: int) -> list[str | None]:
    """Texts of each row's flags, separated by spaces; None without any."""
    texts: list[str | None] = [None] * rows
    for flag in flags:
        for row in flag.rows.tolist():
            texts[row] = flag.text if texts[row] is None else f"{texts[row]} {flag.text}"
    return texts


@dataclass(frozen=True, slots=True)
class RowFlags:
    """About the p inputs of a preparation."""

    inputs: Sequence[InputColumn]
    absent: Vector
    """(p,) the code of a value that is no level; NaN for numbers."""
    missing: Truths
    """(p,) whether a missing value is nothing new: a missing category has a level, training rows lacked the number."""
    imputes: Truths
    """(p,) whether a value stands for a missing one."""
    first: Vector
    """`repeated`; what is less, more than `last`, or NaN, deserves a look: the range seen, the codes of levels."""
    last: Vector

    @classmethod
    def about(cls, inputs: Sequence[InputColumn], absent: Vector, missing: Truths, imputes: Truths) -> Self:
        ranges = [
            ((-inf if c.minimum is None else c.minimum), (inf if c.maximum is None else c.maximum))
            if c.levels is None
            else (0, len(c.levels) - 1)
            for c in inputs
        ]
        first, last = map(repeated, np.array(ranges, np.float64).T)
        whether = np.array(missing, np.bool_), np.array(imputes, np.bool_)
        return cls(inputs, np.array(absent, np.float64), *whether, first, last)

    def flags(self, raw: Matrix) -> tuple[Flagged, ...]:
        """Flags of a contiguous raw matrix (n, p): in the order of `CODES`, then by column, the rows ascending."""
        inside = np.empty(raw.shape, bool)
        if outside.ready:
            outside_count = outside.lean(raw, self.first, self.last, inside)
        else:
            np.greater_equal(raw, self.first[: len(self.inputs)], out=inside)
            inside &= raw <= self.last[: len(self.inputs)]
            outside_count = inside.size - np.count_nonzero(inside)
        return self.of(raw, inside, outside_count) if outside_count else ()

    def of(self, raw: Matrix, inside: Truths, outside_count: int) -> tuple[Flagged, ...]:
        """Flags as of `flags`. inside: (n, p) values within range, which need no look; all but `outside_count`."""
        width, inputs = len(self.inputs), self.inputs
        if grouped.ready:
            rows, groups = (
                np.empty(outside_count, np.intp),
                np.empty((2, min(outside_count, KINDS_OF_DOUBT * width)), np.intp),
            )
            count = grouped.lean(raw, inside, self.absent, self.missing, self.imputes, rows, groups)
            keys, ends = groups[:, :count].tolist()
        else:
            keys, ends, rows = self._grouped(raw, inside)
        return tuple(
            Flagged(CODES[key // width], inputs[key % width].name, rows[start:end])
            for key, start, end in zip(keys, [0, *ends], ends, strict=False)
        )

    def _grouped(self, raw: Matrix, inside: Truths) -> tuple[list[int], list[int], Labels]:
        """The result of `grouped`, as arrays."""
        cells = (~inside).ravel().nonzero()[0]
        rows, places = np.divmod(cells, len(self.inputs))
        values = raw.ravel()[cells]
        empty = np.isnan(values)
        absent = self.absent[places]
        categorical = ~np.isnan(absent)
        present = np.where(categorical, np.where(values == absent, UNSEEN, NO_DOUBT), OUTSIDE)
        lacking = np.where(self.missing[places], NO_DOUBT, np.where(categorical, NO_CATEGORY, NO_NUMBER))
        codes = np.where(empty, np.where(self.imputes[places], EMPTY, lacking), present)
        keys = places + len(self.inputs) * codes
        order = keys.argsort(kind="stable")[np.count_nonzero(codes == NO_DOUBT) :]
        used_keys, counts = np.unique(keys[order], return_counts=True)
        return used_keys.tolist(), counts.cumsum().tolist(), rows[order]
