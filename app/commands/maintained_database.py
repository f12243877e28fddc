"""The database that a command looks after: the one of VALIANT_DATABASE_URL, or the embedded one, running or not."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from pydantic import SecretStr
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from app.base.errors import StartFailed
from app.base.settings import Settings
from app.embedded import postgres, redis
from app.embedded.data_folder import Folder
from app.embedded.stack import Stack
from app.store.engine import make_engine

MAINTAIN = text("select set_config('valiant.maintenance', 'on', true), set_config('statement_timeout', '0', true)")


@contextmanager
def running_servers(settings: Settings, *, exclusively: bool = False, create: bool = False) -> Iterator[Settings]:
    """Settings with the addresses of running servers; the embedded ones are started where they do not run.

    exclusively: raise StartFailed where they run. create: make a database where there is none.
    """
    if settings.database_url is not None:
        yield settings
        return
    folder = Folder(settings.data)
    if not create and not (folder.root / "postgres").exists():
        raise StartFailed(f"There is no database in {folder.root}: choose its folder with --data.")
    if not exclusively and _accepts(folder):
        addresses = {
            "database_url": postgres.url(folder),
            "broker_url": redis.broker_url(folder),
            "cache_url": redis.cache_url(folder),
        }
        missing = {name: SecretStr(url) for name, url in addresses.items() if getattr(settings, name) is None}
        yield settings.model_copy(update=missing)
        return
    with Stack(settings) as stack:
        yield stack.settings


@contextmanager
def connected_engine(settings: Settings, role: str) -> Iterator[Engine]:
    """An engine for `role`. Raises StartFailed where the database fails, with its reason."""
    engine = make_engine(settings, role=role)
    try:
        yield engine
    except DBAPIError as error:
        raise StartFailed(f"The database refuses: {' '.join(str(error.orig).split())}") from error
    finally:
        engine.dispose()


@contextmanager
def maintenance(engine: Engine) -> Iterator[Connection]:
    """A transaction of the login, which sees rows of all projects."""
    with engine.begin() as connection:
        connection.execute(MAINTAIN)
        yield connection


def _accepts(folder: Folder) -> bool:
    try:
        with psycopg.connect(host=str(folder.sockets), user=postgres.USER, dbname="postgres", connect_timeout=5):
            return True
    except psycopg.OperationalError:
        return False
