"""`valiant restore FILE`: the database of a backup, with the roles and privileges that a dump does not hold."""

from pathlib import Path

from sqlalchemy import Connection, Engine, text

from app.base.errors import StartFailed
from app.base.settings import Settings
from app.commands.doctor import check_database, print_checks
from app.commands.maintained_database import connected_engine, maintenance, running_servers
from app.commands.postgres_tools import Tools
from migrations import security
from migrations.catalogue_facts import read_facts
from migrations.schema_revision import head, upgrade

LIVE = text(
    "select application_name, count(*) from pg_stat_activity where datname = current_database() "
    "and application_name like 'valiant-%' and application_name not in ('valiant-restore', 'valiant-doctor') group by 1"
)
NEWEST_JOB = text("select id, created_at from jobs order by created_at desc limit 1")
WORKING_KEYS = "from api_keys where revoked_at is null and expires_at > now()"
REVOKE = text("update api_keys set revoked_at = now(), changed_at = clock_timestamp() where revoked_at is null")
TIME = "%Y-%m-%d %H:%M:%S UTC"


def restore(settings: Settings, file: Path, *, replace: bool, revoke_keys: bool) -> None:
    """Restore `file`, migrate, and check the result. Raises StartFailed; the database is then as it was, or whole."""
    if not file.is_file():
        raise StartFailed(f"There is no file {file}.")
    with (
        running_servers(settings, exclusively=True, create=True) as running,
        connected_engine(running, "restore") as engine,
    ):
        tools = Tools.for_server(running, engine, embedded=settings.database_url is None)
        archive = tools.read_archive(file)
        if archive.revision > head():
            raise StartFailed(
                f"The backup is of revision {archive.revision}, and this release knows {head()}: install the release "
                "that made it, or a later one."
            )
        names = _prepare(engine, replace=replace)
        tools.restore(file, f"drop table if exists {', '.join(names)} cascade;" if names else "")
        assert running.database_url is not None  # noqa: S101  the servers have one
        upgrade(running.database_url.get_secret_value())
        print(f"restored: {file} of {archive.created_at:{TIME}}, revision {archive.revision}")
        with maintenance(engine) as connection:
            _report(connection, f"{archive.created_at:{TIME}}", revoke_keys=revoke_keys)
        print("Restart every API and worker: they hold models and keys of the database before.")
        if not print_checks(check_database(engine)):
            raise StartFailed("The database is restored, but not as it must be.")


def _prepare(engine: Engine, *, replace: bool) -> list[str]:
    """Make the roles, and return the tables that the backup takes the place of. Raises StartFailed."""
    with maintenance(engine) as connection:
        if live := connection.execute(LIVE).all():
            clients = ", ".join(f"{name} ({number})" for name, number in live)
            raise StartFailed(f"Stop what uses the database first: {clients}.")
        security.repair(connection)
        facts = read_facts(connection, security.TABLES, security.ROLES)
        names = sorted(fact.target for fact in facts if fact.kind == "relation" and fact.role == "table")
        filled = [
            name
            for name in names
            if name in security.PROTECTED and connection.scalar(text(f"select exists (select from {name})"))  # noqa: S608  a name of ours
        ]
    if filled and not replace:
        raise StartFailed(f"The database is not empty ({', '.join(filled)}): --replace takes all of it away first.")
    return names


def _report(connection: Connection, created_at: str, *, revoke_keys: bool) -> None:
    job = connection.execute(NEWEST_JOB).one_or_none()
    print("newest job: none" if job is None else f"newest job: {job.id}, submitted {job.created_at:{TIME}}")
    keys = connection.scalar(text(f"select count(*) {WORKING_KEYS}"))
    if revoke_keys:
        connection.execute(REVOKE)
        print(f"revoked: {keys} keys; create one with `valiant keys create`")
    elif keys:
        print(f"Keys revoked after {created_at} work again: revoke them, or restore with --revoke-keys.")
