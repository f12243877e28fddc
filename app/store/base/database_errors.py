"""Meaning of an error of the database: a server that is away, or a database that `valiant migrate` has to prepare.

Errors are read by their attributes alone: a process without a database loads no driver.
"""

from typing import Any

from app.base.errors import DatabaseUnavailable, ValiantError

NOT_PREPARED = frozenset({"22023", "3F000", "42501", "42703", "42704", "42P01"})
"""SQLSTATEs of a role that is missing, a privilege that is missing, and a schema, column, object or table."""
PASSING = frozenset({"25006", "25P03", "40001", "40P01", "55P03", "57014"})
"""SQLSTATEs of what another attempt may not meet: a replica that is not yet the primary, time-outs of transactions,
locks and statements, and transactions that wait for each other."""
CLASSES_OF_VALUES = ("22", "23")
"""Classes of SQLSTATE whose messages quote values."""


class DatabaseNotPrepared(ValiantError):
    code, status, title = "database_not_prepared", 503, "The database is not prepared for this release"
    remedy = "An operator runs `valiant migrate`; until then every request that needs the database fails alike."


def sqlstate(error: BaseException | None) -> str | None:
    """The SQLSTATE of an error; None where the server sent none."""
    return getattr(getattr(error, "orig", None), "sqlstate", None)


def is_not_prepared(error: BaseException | None) -> bool:
    """True if it will be so again until somebody prepares the database."""
    return sqlstate(error) in NOT_PREPARED


def is_passing(error: BaseException | None) -> bool:
    """True if the same may succeed in a moment."""
    return sqlstate(error) in PASSING


def to_problem(error: BaseException | None) -> DatabaseNotPrepared | DatabaseUnavailable:
    """The problem that a client receives."""
    return DatabaseNotPrepared() if is_not_prepared(error) else DatabaseUnavailable()


def to_log(error: BaseException) -> dict[str, str]:
    """Fields for the log: the type, the SQLSTATE and the driver's message, without what callers sent."""
    shown, state = {"error": type(error).__name__}, sqlstate(error)
    driver_error: Any = getattr(error, "orig", None)
    if state is not None:
        shown["sqlstate"] = state
        message = driver_error.diag.message_primary or ""
    else:  # the server could not be reached, or the connection broke
        message = " ".join(str(driver_error or "").split())
    if message and (state is None or state in NOT_PREPARED or not state.startswith(CLASSES_OF_VALUES)):
        shown["reason"] = message
    return shown
