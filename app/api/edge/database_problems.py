"""Failures of the database as problems: apart from the others, as a process without one loads no driver."""

import structlog
from fastapi import Request, Response
from psycopg.errors import DiskFull
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.api.edge import problems
from app.errors import DatabaseUnavailable, StorageFull

log = structlog.get_logger(__name__)


def _no_database(request: Request, error: Exception) -> Response:
    if isinstance(error, DBAPIError) and isinstance(error.orig, DiskFull):
        return problems.named(request, StorageFull("The disk of the database is full."))
    log.error("database_unavailable", exc_info=error)
    return problems.respond(request, DatabaseUnavailable())


HANDLERS: problems.Handlers = {
    **problems.HANDLERS,
    **dict.fromkeys((OperationalError, InterfaceError, PoolTimeout), _no_database),
}
"""Those of all other failures too."""
