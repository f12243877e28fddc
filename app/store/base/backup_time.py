"""When the newest backup was made, which stands in the database itself.

It is the comment of the table `alembic_version`: one statement of SQL, which whatever makes backups can send.
"""

from datetime import UTC, datetime

from sqlalchemy import Connection, text
from sqlalchemy.orm import Session

PREFIX = "newest backup: "


def note_backup(connection: Connection, time: datetime) -> None:
    """State that a backup was made. Needs the owner of the table."""
    comment = f"{PREFIX}{time.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    connection.exec_driver_sql(f"comment on table alembic_version is '{comment}'")


def read_backup_time(session: Session | Connection) -> datetime | None:
    """When the newest backup was made; None where none is stated."""
    comment = session.scalar(text("select obj_description('alembic_version'::regclass, 'pg_class')"))
    try:
        return datetime.fromisoformat(str(comment).removeprefix(PREFIX)).astimezone(UTC)
    except ValueError:
        return None
