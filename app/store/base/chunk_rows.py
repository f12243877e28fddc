"""Chunks of a file that are rows of a table, numbered from 0."""

from sqlalchemy import ColumnElement, delete, func, select
from sqlalchemy.orm import InstrumentedAttribute, Session

DELETED_TOGETHER = 64
"""Chunks deleted by one statement: the limit on its time is no limit on the size of a file."""


def delete_chunks(session: Session, seq: InstrumentedAttribute[int], condition: ColumnElement[bool]) -> None:
    """Delete the chunks for which the condition holds. seq: the column of their numbers."""
    count = session.scalars(select(func.count(seq)).where(condition)).one()
    for first in range(0, count, DELETED_TOGETHER):
        session.execute(delete(seq.class_).where(condition, seq < first + DELETED_TOGETHER))
