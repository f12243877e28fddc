"""Bins of a column, learned from reference rows, and how many rows of a table fall into each.

Numbers have bins between quantiles of the reference rows, categories a bin for each frequent level and a last one for
all others. There are fewer bins where there are few reference rows: an estimated share that is far off would make
every later window look shifted.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from pydantic import Field

from app.base.wire import Wire
from app.ml.contract.algorithm import Labels, Vector
from app.ml.contract.columns import ColumnKind
from app.ml.preparation.arrow_columns import Cells, codes, distinct, measured

MAX_NUMBER_BINS = 20
MAX_LEVELS = 50
MIN_BINS = 5
REFERENCE_ROWS_PER_BIN = 500
QUANTILES = 101
"""Quantiles of a numeric column that are stored, evenly spaced from the smallest value to the largest."""

BinKind: TypeAlias = Literal["numeric", "categorical"]
COMPARED_KINDS = {ColumnKind.NUMERIC, ColumnKind.BOOLEAN, ColumnKind.CATEGORICAL}
"""Kinds of columns that are compared: dates move on with time, and texts are no categories."""


class ReferenceColumn(Wire):
    """Bins of a column and the counts of the reference rows in them."""

    name: str = Field(description="Name of the column.")
    kind: BinKind = Field(description="numeric: the bins are intervals; categorical: they are levels.")
    edges: list[float] = Field(
        [],
        description="Upper ends of all bins but the last of a numeric column, ascending; an end belongs to the bin "
        "below it.",
    )
    levels: list[str] = Field(
        [], description="Levels of a categorical column, most frequent first; the last bin has all others."
    )
    complete: bool = Field(
        True, description="True where every level of the reference rows has a bin, so that others are unseen ones."
    )
    counts: list[float] = Field(description="Reference rows in each bin.")
    missing: float = Field(description="Reference rows without a value.")
    quantiles: list[float] = Field([], description="Evenly spaced quantiles of the numbers, from smallest to largest.")

    @property
    def rows(self) -> float:
        return sum(self.counts) + self.missing

    @property
    def labels(self) -> list[str]:
        """Name of each bin."""
        if self.kind == "categorical":
            return [*self.levels, "(other)"]
        ends = [f"{edge:.6g}" for edge in self.edges]
        between = [f"{low} to {high}" for low, high in pairwise(ends)]
        return [f"up to {ends[0]}", *between, f"above {ends[-1]}"] if ends else ["all"]


class BinCounts(NamedTuple):
    """Rows of a column by bin."""

    counts: Vector
    """(B,) in each bin."""
    missing: float

    def __add__(self, other: object) -> "BinCounts":
        if not isinstance(other, BinCounts):
            return NotImplemented
        return BinCounts(self.counts + other.counts, self.missing + other.missing)


def number_column(name: str, values: Vector, quantiles: bool = True) -> ReferenceColumn:
    """Bins of numbers (n,), NaN where missing."""
    present = np.sort(values[~np.isnan(values)])
    edges = number_edges(present)
    counts = np.bincount(np.searchsorted(edges, present, side="left"), minlength=edges.size + 1)
    stored = _quantiles(present, np.linspace(0, 1, QUANTILES)) if quantiles and present.size else np.zeros(0)
    return ReferenceColumn(
        name=name,
        kind="numeric",
        edges=edges.tolist(),
        counts=counts.astype(np.float64).tolist(),
        missing=float(values.size - present.size),
        quantiles=stored.tolist(),
    )


def number_edges(ordered: Vector) -> Vector:
    """(B − 1,) different quantiles between which bins of ascending numbers lie; around a constant, both its sides."""
    if not ordered.size:
        return np.zeros(0)
    if ordered[0] == ordered[-1]:
        return np.array([np.nextafter(ordered[0], -np.inf), ordered[0]])
    count = bin_count(ordered.size, MAX_NUMBER_BINS)
    edges = np.unique(_quantiles(ordered, np.arange(1, count) / count))
    return edges[edges < ordered[-1]] if edges[0] < ordered[-1] else edges


def bin_count(rows: int, limit: int) -> int:
    """Bins of so many reference rows."""
    return int(min(limit, max(MIN_BINS, rows // REFERENCE_ROWS_PER_BIN)))


def level_column(name: str, places: Vector, words: Sequence[str]) -> ReferenceColumn:
    """Bins of categories, given by (n,) codes into words; NaN where missing, negative for none of the words."""
    level_codes = places[places >= 0].astype(np.intp)
    strays = int(np.count_nonzero(places < 0))
    by_word = np.bincount(level_codes, minlength=len(words))
    order = np.argsort(-by_word, kind="stable")
    order = order[by_word[order] > 0]
    shown = order[: bin_count(level_codes.size, MAX_LEVELS)]
    counts = by_word[shown].astype(np.float64)
    return ReferenceColumn(
        name=name,
        kind="categorical",
        levels=[words[place] for place in shown.tolist()],
        complete=shown.size == order.size and not strays,
        counts=[*counts.tolist(), float(level_codes.size + strays - counts.sum())],
        missing=float(np.count_nonzero(np.isnan(places))),
    )


def reference_column(name: str, kind: ColumnKind, cells: Cells) -> ReferenceColumn:
    """Bins of a column of a table. Raises InvalidData for infinities."""
    if kind.measured:
        return number_column(name, measured(cells, name))
    words = distinct(cells)
    return level_column(name, codes(cells, words), words.to_pylist())


def count_cells(column: ReferenceColumn, cells: Cells) -> BinCounts:
    """Rows of a table by the bins of the reference. Raises InvalidData for infinities."""
    return count_values(column, column_values(column, cells))


def column_values(column: ReferenceColumn, cells: Cells) -> Vector:
    """(n,) numbers, or codes of the levels of the bins; NaN where missing. Raises InvalidData for infinities."""
    if column.kind == "numeric":
        return measured(cells, column.name)
    return codes(cells, pa.array(column.levels, pa.string()), float(len(column.levels)))


def count_values(column: ReferenceColumn, values: Vector) -> BinCounts:
    """The same of numbers, or of codes of the column's levels, where any other code is another level."""
    present = values[~np.isnan(values)]
    counts = np.bincount(bin_indices(column, present), minlength=len(column.counts)).astype(np.float64)
    return BinCounts(counts, float(values.size - present.size))


def bin_indices(column: ReferenceColumn, present: Vector) -> Labels:
    """(n,) bins of values that are there."""
    if column.kind == "numeric":
        return np.searchsorted(np.array(column.edges), present, side="left")
    last = len(column.levels)
    inside = (present >= 0) & (present < last)
    return np.where(inside, present, last).astype(np.intp)


def _quantiles(ordered: Vector, shares: Vector) -> Vector:
    """Values of the sample itself: the smallest with at least that share of values at or below it."""
    places = np.clip(np.ceil(shares * ordered.size).astype(np.intp) - 1, 0, ordered.size - 1)
    result: Vector = ordered[places]
    return result
