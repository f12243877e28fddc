"""The clock of the database, which all processes share: no process's own clock decides anything."""

from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

NOW = func.clock_timestamp()


def time_of(session: Session) -> datetime:
    """Return the present time by the clock of the database."""
    now: datetime = session.scalars(select(NOW)).one()
    return now
