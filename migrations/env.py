"""Runs migrations, one process at a time.

A session lock, not a transaction lock: it also covers the reading of the present revision, so that
of many processes that start at once one migrates and the others find the work done.
"""

import os

from alembic import context
from sqlalchemy import Connection, NullPool, create_engine, text

from app.store.all_tables import read_metadata
from app.store.engine import driver_url
from migrations.schema_revision import LOCK

CONNECT = {"application_name": "valiant-migrate", "connect_timeout": 10}


def run() -> None:
    address = context.config.attributes.get("database_url") or driver_url(os.environ["VALIANT_DATABASE_URL"])
    patience = context.config.attributes.get("patience", "120s")
    engine = create_engine(address, poolclass=NullPool, connect_args=CONNECT)
    with engine.connect() as connection:
        connection.execute(text("select set_config('lock_timeout', :patience, false)"), {"patience": patience})
        connection.execute(text("select pg_advisory_lock(:key)"), {"key": LOCK})
        connection.commit()
        try:
            _migrate(connection)
        finally:
            connection.rollback()
            connection.execute(text("select pg_advisory_unlock(:key)"), {"key": LOCK})
            connection.commit()


def _migrate(connection: Connection) -> None:
    connection.execute(text("set lock_timeout = '10s'"))  # a queue behind a table lock would stop the service
    connection.execute(text("set valiant.maintenance = 'on'"))  # else policies would hide rows from it
    connection.commit()
    before, after = (context.config.attributes.get(name, lambda _: None) for name in ("before", "after"))
    try:
        before(connection)
    finally:
        connection.commit()
    context.configure(connection=connection, target_metadata=read_metadata(), compare_server_default=True)
    with context.begin_transaction():
        context.run_migrations()
        after(connection)


run()
