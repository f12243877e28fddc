"""`valiant doctor`: everything that the service stands on, each with a remedy where it is not right."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from uuid import UUID

from sqlalchemy import Connection, Engine, text

from app.base.errors import StartFailed, ValiantError
from app.base.project_context import in_project
from app.base.settings import Settings
from app.commands.machine_checks import Result, check_machine
from app.commands.maintained_database import connected_engine, maintenance, running_servers
from app.commands.postgres_tools import find_folder
from app.services.observability.database_access import list_faults
from app.services.predictions.model_loading import opened, stored
from app.store.base.backup_time import read_backup_time
from app.store.models.pointer import Pointer
from app.store.unit_of_work import WorkFactory
from migrations.schema_revision import head, revision_of

MAX_CHECKED_MODELS = 20
MAX_CLOCK_SECONDS = 5.0
"""Difference between clocks beyond which leases and expiry dates are wrong."""
MAX_LATENCY_SECONDS = 0.05
"""Time of a statement beyond which each request that needs the database is slow: that of a server far away."""
MIN_MAJOR = 15
MIN_FREE_CONNECTIONS = 5
INCOMPLETE = {
    "datasets": "select count(*) from datasets d where d.rows <> (select coalesce(sum(c.rows), 0) "
    "from dataset_chunks c where c.dataset_id = d.id and c.project_id = d.project_id)",
    "files": "select count(*) from files f where f.size_bytes <> (select coalesce(sum(octet_length(c.payload)), 0) "
    "from file_chunks c where c.file_id = f.id and c.project_id = f.project_id)",
    "model versions": "select count(*) from model_versions v where v.size_bytes <> (select "
    "coalesce(sum(octet_length(c.payload)), 0) from model_chunks c where c.model = v.model and c.version = v.version "
    "and c.project_id = v.project_id)",
}
NEWEST_MODELS = text(
    "select v.project_id, v.model, v.version, v.digest, v.size_bytes from model_versions v order by exists ("
    "select from aliases a where a.project_id = v.project_id and a.model = v.model and a.version = v.version) desc, "
    "v.created_at desc limit :count"
).bindparams(count=MAX_CHECKED_MODELS)
"""Those that aliases point at come first."""


def doctor(settings: Settings) -> None:
    """Print every check. Raises StartFailed where one finds a fault."""
    with running_servers(settings) as running:
        with connected_engine(running, "doctor") as engine:
            right = print_checks(check_database(engine))
        right &= print_checks(check_machine(running))
    if not right:
        raise StartFailed("Something is not right: the remedies are above.")


def print_checks(results: Iterator[Result]) -> bool:
    """Print each result as it comes, and return True if all are right."""
    right = True
    for name, detail, remedy in results:
        print(f"{'ok' if remedy is None else 'FAULT':<6}{name}: {detail}{'' if remedy is None else f' {remedy}'}")
        right &= remedy is None
    return right


def check_database(engine: Engine) -> Iterator[Result]:
    """The server, its tools, the schema, what the service may do there, and the data."""
    work = WorkFactory(engine)
    with maintenance(engine) as connection:
        yield from _check_server(connection)
        revision = revision_of(connection)
        if revision < head():
            yield Result("schema", f"revision {revision or 'none'} instead of {head()}.", "Run `valiant migrate`.")
            return
        yield Result("schema", f"revision {revision}")
    faults = list_faults(work)
    if faults:
        yield Result("access", f"{'; '.join(faults)}.", "Run `valiant migrate`.")
        return
    yield Result("access", "roles, privileges and policies are those of this release")
    with maintenance(engine) as connection:
        for name, query in INCOMPLETE.items():
            broken = connection.scalar(text(query))
            remedy = "Restore a backup, or upload and train them again." if broken else None
            yield Result(
                name, f"{broken} lack some of their bytes." if broken else "all of their bytes are there", remedy
            )
        versions = [(row[0], Pointer(*row[1:])) for row in connection.execute(NEWEST_MODELS)]
        yield _check_queue(connection)
        yield Result("backup", f"the newest is of {read_backup_time(connection) or 'no time that is stated'}")
    yield _check_models(work, versions)


def _check_server(connection: Connection) -> Iterator[Result]:
    version, recovers, now = connection.execute(
        text("select current_setting('server_version_num')::int, pg_is_in_recovery(), clock_timestamp()")
    ).one()
    shown = f"PostgreSQL {version // 10_000}.{version % 10_000}"
    remedy = "Promote it, or give the address of the primary." if recovers else None
    remedy = remedy if version >= MIN_MAJOR * 10_000 else f"Upgrade it to {MIN_MAJOR} or later."
    yield Result("server", f"{shown}, which only reads." if recovers else shown, remedy)
    yield _check_latency(connection)
    yield _check_connections(connection)
    try:
        yield Result("tools", str(find_folder(version // 10_000)))
    except StartFailed as error:
        yield Result("tools", str(error), "Without them there are no backups.")
    seconds = abs((datetime.now(UTC) - now).total_seconds())
    late = "Let both machines set their clocks by the network." if seconds > MAX_CLOCK_SECONDS else None
    yield Result("clock", f"{seconds:.1f} s from the server's", late)


def _check_latency(connection: Connection) -> Result:
    """The fastest of some statements: what the way there takes, not what else the server does."""
    seconds = min(_time_statement(connection) for _ in range(5))
    remedy = "Run API and workers near the database." if seconds > MAX_LATENCY_SECONDS else None
    return Result("latency", f"{1e3 * seconds:.1f} ms for a statement", remedy)


def _time_statement(connection: Connection) -> float:
    begun = time.perf_counter()
    connection.execute(text("select 1"))
    return time.perf_counter() - begun


def _check_connections(connection: Connection) -> Result:
    limit, used = connection.execute(
        text(
            "select least(current_setting('max_connections')::int - "
            "current_setting('superuser_reserved_connections')::int, nullif((select rolconnlimit from pg_roles where "
            "rolname = session_user), -1)), (select count(*) from pg_stat_activity where datname is not null)"
        )
    ).one()
    remedy = "Raise max_connections, lower VALIANT_DATABASE_POOL, or put a pooler between."
    return Result("connections", f"{used} of {limit} are used", remedy if limit - used < MIN_FREE_CONNECTIONS else None)


def _check_queue(connection: Connection) -> Result:
    """Jobs that wait while no worker lives. A deployment that has not started yet has none that wait."""
    alive, waiting = connection.execute(
        text(
            "select (select count(*) from workers where seen_at > clock_timestamp() - interval '2 minutes'), "
            "(select count(*) from jobs where state = 'queued')"
        )
    ).one()
    remedy = "Start a worker: `valiant worker`, and look at the log of the last one." if waiting and not alive else None
    return Result("workers", f"{alive} are alive, {waiting} jobs wait", remedy)


def _check_models(work: WorkFactory, versions: list[tuple[UUID, Pointer]]) -> Result:
    """Each as a process that serves it for the first time: bytes, digest and golden rows."""
    faults = []
    for project, pointer in versions:
        try:
            with in_project(project):
                opened(work, pointer, stored(work, pointer))
        except ValiantError as error:
            faults.append(f"{pointer.model}/{pointer.version}: {error.detail or error.title}")
    if faults:
        return Result("models", f"{'; '.join(faults)}.", "Restore a backup, or train them again.")
    return Result("models", f"{len(versions)} predict their golden rows alike")
