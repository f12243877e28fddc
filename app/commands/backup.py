"""`valiant backup FILE`: all of the service's data in one file, while it runs or not."""

import os
from pathlib import Path

from app.base.errors import StartFailed
from app.base.settings import MiB, Settings
from app.commands.maintained_database import connected_engine, maintenance, running_servers
from app.commands.postgres_tools import Tools
from app.store.base.backup_time import note_backup
from migrations.schema_revision import head, revision_of
from migrations.security import list_repairs


def backup(settings: Settings, file: Path) -> None:
    """Write `file`, which is whole or not there. Raises StartFailed.

    A login that policies bind would dump a part of the rows without an error: hence what lets it see all comes first.
    """
    draft = file.with_name(f"{file.name}.part")
    with running_servers(settings) as running, connected_engine(running, "backup") as engine:
        tools = Tools.for_server(running, engine, embedded=settings.database_url is None)
        with maintenance(engine) as connection:
            if not (revision := revision_of(connection)):
                raise StartFailed("The database has no tables of Valiant: there is nothing to back up.")
            if revision <= head() and (faults := [repair.fault for repair in list_repairs(connection)]):
                raise StartFailed(f"{faults[0]}: run `valiant migrate` before a backup, which could lack rows.")
        tools.demand_maintenance()
        try:
            os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))  # it holds all rows
            tools.dump(draft)
            archive = tools.read_archive(draft)
            with draft.open("rb") as written:
                os.fsync(written.fileno())
            draft.rename(file)
        except OSError as error:
            raise StartFailed(f"{file} cannot be written: {error.strerror}.") from error
        finally:
            draft.unlink(missing_ok=True)
        with maintenance(engine) as connection:
            note_backup(connection, archive.created_at)
    size = file.stat().st_size / MiB
    print(f"saved: {file}, {size:.1f} MiB, of {archive.created_at:%Y-%m-%d %H:%M:%S UTC}, revision {archive.revision}")
