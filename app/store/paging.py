"""Pages of a list that has one value in a column, newest first, read from the index of that column and the id."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement
from sqlalchemy.orm import InstrumentedAttribute

Column = InstrumentedAttribute[Any]


class Of(NamedTuple):
    """The condition and the order of such a list.

    Both are written so that no other index fits. With an equality the planner may walk the table by id, and throw
    away all rows with other values, in the hope that those it looks for come soon.
    """

    conditions: Sequence[ColumnElement[bool]]
    order: Sequence[ColumnElement[Any]]


def of(keys: Sequence[tuple[Column, object]], row_id: Column) -> Of:
    """keys: the columns of an index before the id, each with its value; none for all rows."""
    equal = [column.between(value, value) for column, value in keys]
    return Of(equal, [*(column.desc() for column, _ in keys), row_id.desc()])
