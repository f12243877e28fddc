"""A dataset of pairs of named rows of another dataset: its columns, and the places of the rows it names."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from app.base.errors import InvalidData
from app.base.faults import Fault
from app.ml.contract.algorithm import Labels, Vector
from app.ml.contract.column_names import no_column
from app.ml.contract.columns import TableColumn
from app.ml.contract.relations import Edges
from app.ml.preparation.arrow_columns import pointer
from app.ml.training.planning.relation_request import EdgeRelations, PairRelations

AT = "/relations"
NAMED = 10
"""Rows or cells that a refusal names."""
TOLERANCE = 1e-8
"""Difference of two values of one pair, relative to the larger, that counts as rounding."""


class RelatedTable(NamedTuple):
    """The dataset that the relations of a training name."""

    digest: str
    columns: tuple[TableColumn, ...]
    read: Callable[[], pa.Table] | None = None
    """All pairs, after the rows of the training's own dataset; only where rows are read."""
    alone: bool = False
    """True if the training has no dataset of its own: its rows are the items of these edges."""


def related_faults(
    relations: EdgeRelations | PairRelations, related: RelatedTable | None, item: str | None
) -> Iterator[Fault]:
    """Faults of the names of rows. item: the column that names the rows of the training's own dataset."""
    if item is None:
        yield Fault("/item", "Relations refer to rows by their names: give the column that names them.", "missing")
    if related is None:
        yield Fault(f"{AT}/dataset", "Relations of another dataset cannot be given here: leave them out.")
        return
    columns_by_name = {column.name: column for column in related.columns}
    for field, name in relations.columns.items():
        if name not in columns_by_name:
            yield no_column(f"{AT}/{field}", name, columns_by_name)
        elif field in {"first", "second"} and columns_by_name[name].missing:
            yield Fault(f"{AT}/{field}", f"{columns_by_name[name].missing} rows lack a name in this column.", "missing")


def places(table: pa.Table, name: str, items: NDArray[np.str_]) -> Labels:
    """(m,) place among the items of the name in each row. Raises InvalidData for one that is not there."""
    positions = pc.index_in(table.column(name).cast(pa.string()), value_set=pa.array(items.tolist(), pa.string()))
    refuse(np.flatnonzero(positions.is_null().to_numpy()), name, "The dataset has no row of this name")
    return np.asarray(positions.to_numpy(), np.intp)


def distinct_edges(
    first: Labels,
    second: Labels,
    values: Vector,
    name: str,
    weights: tuple[Vector, str] | None = None,
    *,
    average: bool = False,
) -> Edges:
    """Each pair of different rows once; pairs without a value are left out.

    Raises InvalidData for a pair that is there twice with different values or weights. name: of the column of values.
    weights: above 0 where there is a value, and their column. average: a pair has the mean of its values by their
    weights then, and the sum of these; without weights no sum.
    """
    indices = np.flatnonzero((first != second) & ~np.isnan(values))
    low, high = np.minimum(first, second)[indices], np.maximum(first, second)[indices]
    order = np.lexsort((indices, high, low))
    low, high, indices, values = low[order], high[order], indices[order], values[indices][order]
    again = np.zeros(indices.size, np.bool_)
    again[1:] = (np.diff(low) == 0) & (np.diff(high) == 0)
    if average and indices.size:
        starts, parts = np.flatnonzero(~again), np.ones(indices.size) if weights is None else weights[0][indices]
        sums = np.add.reduceat(parts, starts)
        means = np.add.reduceat(parts * values, starts) / sums
        return Edges(low[starts], high[starts], means, None if weights is None else sums)
    repeats = np.flatnonzero(again)

    def once(numbers: Vector, name: str, what: str) -> Vector:
        unlike = differ(numbers[repeats], numbers[repeats - 1])
        refuse(np.sort(indices[repeats[unlike]]), name, f"Another row has this pair with another {what}")
        return numbers[~again]

    values = once(values, name, "value")
    shares = None if weights is None else once(weights[0][indices], weights[1], "weight")
    return Edges(low[~again], high[~again], values, shares)


def differ(first: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.bool_]:
    """True where two values of one pair differ by more than rounding; false where one is NaN."""
    return np.asarray(np.abs(first - other) > TOLERANCE * np.maximum(np.abs(first), np.abs(other)))


def refuse(rows: Labels, name: str, detail: str) -> None:
    """Raise InvalidData that names these rows of the dataset of pairs, if there are any."""
    if rows.size:
        faults = [Fault(f"{AT}{pointer(row, name)}", f"{detail}.") for row in rows[:NAMED].tolist()]
        raise InvalidData(f"{rows.size} rows of the dataset of relations are at fault.", faults=faults)
