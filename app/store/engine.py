"""The connection pool of one process."""

from contextlib import suppress

from sqlalchemy import Engine, create_engine, make_url
from sqlalchemy.exc import ArgumentError

from app.base.errors import StartFailed
from app.base.settings import Settings
from app.processes.processor_cores import count_slots

_OPTIONS = " ".join(
    f"-c {name}={value}"
    for name, value in {
        "timezone": "UTC",
        "synchronous_commit": "on",
        "lock_timeout": "10s",
        "statement_timeout": "60s",
        "idle_in_transaction_session_timeout": "30s",
    }.items()
)


def make_engine(settings: Settings, *, role: str) -> Engine:
    """`role` names the process in `pg_stat_activity`. Connects lazily, so nothing is open before a fork.

    `prepare_threshold=None`: prepared statements do not survive a pooler in transaction mode.
    The keep-alives end a connection whose server has silently gone after about 20 s.
    """
    if settings.database_url is None:
        raise ValueError("There is no database: set VALIANT_DATABASE_URL, or run `valiant up`.")
    return create_engine(
        driver_url(settings.database_url.get_secret_value()),
        pool_size=pool_size(settings, role=role),
        max_overflow=0,
        pool_timeout=5,
        pool_recycle=1800,
        pool_pre_ping=True,
        hide_parameters=True,  # else its messages, and so logs, quote what callers sent
        connect_args={
            "application_name": f"valiant-{role}",
            "connect_timeout": 5,
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 2,
            "options": _OPTIONS,
            "prepare_threshold": None,
        },
    )


def pool_size(settings: Settings, *, role: str) -> int:
    """A worker has as many connections as it can use at once: each attempt reads, beats and ends, and two sweep."""
    return 3 * count_slots(settings) + 2 if role == "worker" else settings.database_pool


def driver_url(address: str) -> str:
    """`postgres://…` as SQLAlchemy wants it, with the driver named. Raises StartFailed if it is no URL."""
    with suppress(ArgumentError, ValueError):
        if address.partition("?")[0].count("@") <= 1:  # else a part of the password would be logged, as the host
            url = make_url(address.replace("postgres://", "postgresql://", 1))
            return url.set(drivername="postgresql+psycopg").render_as_string(hide_password=False)
    raise StartFailed(
        "VALIANT_DATABASE_URL is no URL of a database: write postgresql://user@host:5432/database. The password goes "
        "into PGPASSWORD as it is, or into the URL with @ / : # % as %40 %2F %3A %23 %25."
    )
