"""Failures of the database as problems: apart from the others, as a process without one loads no driver."""

import structlog
from fastapi import Request, Response
from psycopg.errors import DiskFull
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.api.edge import problems
from app.base import logs
from app.base.errors import StorageFull
from app.store.base.database_errors import is_not_prepared, is_passing, to_log, to_problem

log = structlog.get_logger(__name__)


def _no_database(request: Request, error: Exception) -> Response:
    if isinstance(error, DBAPIError) and isinstance(error.orig, DiskFull):
        return problems.named(request, StorageFull("The disk of the database is full."))
    away = isinstance(error, OperationalError | InterfaceError | PoolTimeout)
    if away or is_passing(error) or is_not_prepared(error):
        problem = to_problem(error)
        log.error(problem.code, **to_log(error))
        return problems.respond(request, problem)
    logs.unexpected(error)
    return problems.respond(request, problems.InternalError())


HANDLERS: problems.Handlers = {
    **problems.HANDLERS,
    **dict.fromkeys((DBAPIError, PoolTimeout), _no_database),
}
"""Those of all other failures too."""
