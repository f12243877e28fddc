"""Rows that have one value in a column, newest first, read from the index of that column and the id."""

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from app.base.errors import InvalidRequest
from app.base.faults import Fault
from app.base.references import as_id

Column = InstrumentedAttribute[Any]


class Of(NamedTuple):
    """The condition and the order of such a list.

    Both are written so that no other index fits. With an equality the planner may walk the table by id, and throw
    away all rows with other values, in the hope that those it looks for come soon.
    """

    conditions: Sequence[ColumnElement[bool]]
    order: Sequence[ColumnElement[Any]]


def page_conditions(keys: Sequence[tuple[Column, object]], row_id: Column) -> Of:
    """keys: the columns of an index before the id, each with its value; none for all rows."""
    equal = [column.between(value, value) for column, value in keys]
    return Of(equal, [*(column.desc() for column, _ in keys), row_id.desc()])


def newest(session: Session, reference: UUID | str, name: Column, row_id: Column) -> UUID | None:
    """The id itself, or that of the newest row of this name; None if no row has it."""
    if isinstance(reference, UUID):
        return reference
    named, order = page_conditions([(name, reference)], row_id)
    row_id_: UUID | None = session.scalar(select(row_id).where(*named).order_by(*order).limit(1))
    return row_id_


def id_in(cursor: str) -> UUID:
    """The id of the last row of the page before. Raises InvalidRequest."""
    identifier = as_id(cursor)
    if identifier is None:
        raise InvalidRequest(faults=[Fault("/query/cursor", "This is not a cursor of a former page.")])
    return identifier


def number(cursor: str) -> int:
    """The number of the last row of the page before. Raises InvalidRequest."""
    if cursor.isascii() and cursor.isdigit() and len(cursor) < 19:
        return int(cursor)
    raise InvalidRequest(faults=[Fault("/cursor", "This is not a cursor of a former page.")])
