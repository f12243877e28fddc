"""Names of rows: faults of the column of items, and the names as a model keeps them."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from app.base.errors import InvalidData
from app.base.faults import Fault
from app.ml.contract.column_names import no_column
from app.ml.contract.columns import TableColumn

AT = "/item"
MOST_ITEMS = 100_000
"""Names that a model keeps."""


def item_faults(
    name: str | None, columns_by_name: dict[str, TableColumn], target: str | None, rows: int
) -> Iterator[Fault]:
    """columns_by_name: columns by name. rows: of the table."""
    if name is None:
        return
    column = columns_by_name.get(name)
    if column is None:
        yield no_column(AT, name, columns_by_name)
    elif name == target:
        yield Fault(AT, "The target cannot name the rows too: name another column.")
    elif column.missing:
        yield Fault(AT, f"{column.missing} rows lack a value in this column, by which rows are named.", "missing")
    if rows > MOST_ITEMS:
        yield Fault(AT, f"A model keeps the names of at most {MOST_ITEMS} rows: leave out item.", "too_large")


def read_items(table: pa.Table, name: str) -> NDArray[np.str_]:
    """(n,) value of the column in each row, as text. Raises InvalidData where two rows have the same."""
    items = np.array(table.column(name).cast(pa.string()).to_pylist(), np.str_)
    order = np.argsort(items, kind="stable")
    again = np.flatnonzero(items[order[1:]] == items[order[:-1]])
    if again.size:
        first, other = order[again[0]], order[again[0] + 1]
        detail = f"Rows {first} and {other} have the same value in {name!r}, by which rows are named."
        raise InvalidData(faults=[Fault(AT, detail)])
    return items
