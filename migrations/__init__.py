"""The schema's history, and the two questions asked of it: bring it up to date, is it up to date."""

from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine

from app.store.engine import driver_url

LOCK = 0x56414C49414E54  # "VALIANT"


def config(database_url: str) -> Config:
    """Alembic's configuration for this folder, wherever it was installed."""
    made = Config()
    made.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    made.attributes["database_url"] = driver_url(database_url)
    return made


def upgrade(database_url: str, revision: str = "head") -> None:
    """Bring the schema up to `revision`. Any number of processes may call this at once: one works, the rest wait."""
    command.upgrade(config(database_url), revision)


def downgrade(database_url: str, revision: str) -> None:
    command.downgrade(config(database_url), revision)


@cache
def head() -> str | None:
    """The revision this code was written for."""
    return ScriptDirectory(str(Path(__file__).parent)).get_current_head()


def current(engine: Engine) -> bool:
    """Whether the schema is the one this code was written for. Raises what the database raises."""
    with engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision() == head()
