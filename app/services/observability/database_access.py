"""Check that the database lets the service do its work, by the roles that requests and workers take."""

import time

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app.store.base.database_errors import is_not_prepared, to_log
from app.store.unit_of_work import WorkFactory
from migrations import security
from migrations.schema_revision import head, revision_of

ACCESS_SECONDS = 5.0
"""Seconds for which an access that is right counts as right."""
ONE_ROW = text("select 1 from audit limit 1")
CAN_DELETE = text("select has_table_privilege('audit', 'update, delete, truncate')")


class DatabaseAccess:
    """The faults of the last look. It is taken again each time while there are any, else after `ACCESS_SECONDS`."""

    def __init__(self, work: WorkFactory) -> None:
        self._work = work
        self._right_until = 0.0
        self.fault: str | None = "Not known yet."
        """A sentence on what was wrong at the last look, and what to do; None if nothing was."""

    def check(self) -> bool:
        """True if nothing is wrong. Raises what the database raises."""
        if time.monotonic() >= self._right_until:
            faults = list_faults(self._work)
            if faults:
                further = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
                self.fault = f"{faults[0]}{further}: run `valiant migrate`."
            else:
                self.fault, self._right_until = None, time.monotonic() + ACCESS_SECONDS
        return self.fault is None


def list_faults(work: WorkFactory) -> list[str]:
    """Sentences on all faults, without full stops.

    The roles, privileges and policies are compared with those of this release, unless the schema is of a later one.
    """
    with work.engine.connect() as connection:
        if revision_of(connection) == head() and (repairs := security.list_repairs(connection, of_login=False)):
            return [repair.fault for repair in repairs]
    faults = []
    for unit in (work, work.across_projects):
        try:
            with unit() as w:
                w.session.execute(ONE_ROW)
                if w.session.scalar(CAN_DELETE):
                    faults.append("The service may change entries of the audit log")
        except DBAPIError as error:
            if not is_not_prepared(error):
                raise
            faults.append(f"The database refuses the service: {to_log(error)['reason']}")
    return faults
