"""Database migrations: upgrade the schema, and check whether it is up to date.

Only the first needs alembic, which is imported there: every API process makes the check, and would keep 8 MiB for it.
"""
# ruff: noqa: PLC0415 - for that reason

from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, column, inspect, select, table

from app.store.engine import driver_url

if TYPE_CHECKING:
    from alembic.config import Config

LOCK = 0x56414C49414E54  # "VALIANT"
HERE = Path(__file__).parent
STAMP = table("alembic_version", column("version_num"))


def config(database_url: str) -> "Config":
    """Alembic's configuration for this folder, wherever it was installed."""
    from alembic.config import Config

    made = Config()
    made.set_main_option("script_location", str(HERE).replace("%", "%%"))
    made.attributes["database_url"] = driver_url(database_url)
    return made


def upgrade(database_url: str, revision: str = "head") -> str:
    """Bring the schema up to `revision`, make its roles, privileges and policies right, and return what was not right.

    Any number of processes may call this at once: one migrates, the rest wait. Raises NotPermitted.
    """
    from alembic import command

    from migrations import security

    made, repaired = config(database_url), Counter[str]()

    def repair(connection: Connection) -> None:
        stamped = revision_of(connection)
        done = security.repair(connection)
        if stamped:  # in a new database there is nothing to repair
            repaired.update(done)

    # Before too: without the policy of maintenance migrations would not see the rows that they change.
    made.attributes |= {"before": repair, "after": security.repair}
    command.upgrade(made, revision)
    return security.describe(repaired)


def downgrade(database_url: str, revision: str) -> None:
    from alembic import command

    command.downgrade(config(database_url), revision)


@cache
def head() -> str:
    """The revision this code was written for: files are named by their revisions, which count up."""
    return max((file.name.partition("_")[0] for file in (HERE / "versions").glob("[0-9]*_*.py")), default="")


def current(engine: Engine) -> bool:
    """True if the schema is as new as this code needs. Raises what the database raises.

    A newer one will do: during an upgrade the replicas of the release before serve on it. Hence a migration never takes
    away what that release uses; the release after may.
    """
    with engine.connect() as connection:
        return revision_of(connection) >= head()


def revision_of(connection: Connection) -> str:
    """The revision of the schema; "" where there is none."""
    stamped = inspect(connection).has_table(STAMP.name)
    return (connection.scalar(select(STAMP.c.version_num)) if stamped else None) or ""
