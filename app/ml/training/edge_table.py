"""A dataset of edges: pairs of named rows of another dataset, each with a value."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from app.errors import Fault, InvalidData
from app.ml.contract.algorithm import Labels, Meaning, Vector
from app.ml.contract.column_names import no_column
from app.ml.contract.columns import ColumnKind, TableColumn
from app.ml.contract.relations import Edges
from app.ml.preparation.arrow_columns import measured, pointer
from app.ml.training.relation_request import EdgeRelations

AT = "/relations"
NAMED = 10
"""Rows that a refusal names."""
TOLERANCE = 1e-8
"""Difference of two values of one pair, relative to the larger, that counts as rounding."""


class EdgeTable(NamedTuple):
    """The dataset of edges that a training names."""

    digest: str
    columns: tuple[TableColumn, ...]
    read: Callable[[], pa.Table] | None = None
    """All edges, after the rows of the dataset itself; only where rows are read."""


def edge_faults(given: EdgeRelations, edges: EdgeTable | None, item: str | None) -> Iterator[Fault]:
    """item: the column that names the rows of the dataset."""
    if item is None:
        yield Fault("/item", "Edges refer to rows by their names: give the column that names them.", "missing")
    if edges is None:
        yield Fault(f"{AT}/dataset", "Only a training takes relations of another dataset.")
        return
    known = {column.name: column for column in edges.columns}
    for field, name in (("first", given.first), ("second", given.second), ("value", given.value)):
        if name not in known:
            yield no_column(f"{AT}/{field}", name, known)
        elif field != "value" and known[name].missing:
            yield Fault(f"{AT}/{field}", f"{known[name].missing} edges lack a name in this column.", "missing")
    if given.value in known:
        yield from _value_faults(given, known)


def _value_faults(given: EdgeRelations, known: Mapping[str, TableColumn]) -> Iterator[Fault]:
    column = known[given.value]
    if column.kind != ColumnKind.NUMERIC:
        yield Fault(f"{AT}/value", f"Values of pairs are numbers; this column is {column.kind}.", "wrong_kind")
    elif given.meaning != "kernel" and column.minimum is not None and column.minimum < 0:
        yield Fault(f"{AT}/value", "This column has values below 0.", "negative")


def read_edges(given: EdgeRelations, table: pa.Table, items: NDArray[np.str_]) -> Edges:
    """Edges by the places of their rows among the items; those without a value are left out.

    Raises InvalidData, naming rows of the dataset of edges.
    """
    first, second = (_places(table, name, items) for name in (given.first, given.second))
    values = measured(table.column(given.value), given.value)
    own = (first == second) & (values != 0) & (Meaning(given.meaning) is Meaning.DISSIMILARITY)
    _refuse(np.flatnonzero(own), given.value, "The dissimilarity of a row to itself is not 0")
    kept = np.flatnonzero((first != second) & ~np.isnan(values))
    low, high = np.minimum(first, second)[kept], np.maximum(first, second)[kept]
    order = np.lexsort((kept, high, low))
    low, high, kept = low[order], high[order], kept[order]
    again = np.append(False, (np.diff(low) == 0) & (np.diff(high) == 0)) if kept.size else np.zeros(0, np.bool_)
    _same_value(values[kept], again, kept, given.value)
    return Edges(low[~again], high[~again], values[kept][~again])


def _places(table: pa.Table, name: str, items: NDArray[np.str_]) -> Labels:
    """Place among the items of the name in each row."""
    found = pc.index_in(table.column(name).cast(pa.string()), value_set=pa.array(items.tolist(), pa.string()))
    _refuse(np.flatnonzero(found.is_null().to_numpy()), name, "The dataset has no row of this name")
    places: Labels = found.to_numpy().astype(np.intp)
    return places


def _same_value(values: Vector, again: NDArray[np.bool_], rows: Labels, name: str) -> None:
    """Refuse pairs that are there twice with different values. again: the pair is that of the row before."""
    places = np.flatnonzero(again)
    apart = np.abs(values[places] - values[places - 1])
    unlike = apart > TOLERANCE * np.maximum(np.abs(values[places]), np.abs(values[places - 1]))
    _refuse(np.sort(rows[places[unlike]]), name, "Another row has this pair with another value")


def _refuse(rows: Labels, name: str, detail: str) -> None:
    if rows.size:
        faults = [Fault(f"{AT}{pointer(row, name)}", f"{detail}.") for row in rows[:NAMED].tolist()]
        raise InvalidData(f"{rows.size} rows of the dataset of edges are at fault.", faults=faults)
