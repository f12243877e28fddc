"""`valiant doctor`: everything that the service stands on, each with a remedy where it is not right."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from kombu.exceptions import KombuError
from redis import Redis
from redis.exceptions import RedisError
from sqlalchemy import Connection, Engine, text

from app.base.errors import StartFailed, ValiantError
from app.base.project_context import PROJECT
from app.base.settings import MiB, Settings
from app.commands.maintained_database import connected_engine, maintenance, running_servers
from app.commands.postgres_tools import find_folder
from app.messaging.queue import make_celery
from app.ml.numerics.kernel_folders import tag
from app.processes.disk_space import free
from app.services.kernels.warming import count_compiled
from app.services.observability.database_access import list_faults
from app.services.predictions.model_loading import opened, stored
from app.store.models.pointer import Pointer
from app.store.unit_of_work import WorkFactory
from migrations.schema_revision import head, revision_of

MAX_CHECKED_MODELS = 20
REDIS_SECONDS = 2.0
MAX_CLOCK_SECONDS = 5.0
"""Difference between clocks beyond which leases and expiry dates are wrong."""
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


class Result(NamedTuple):
    """A check: what it is of, what it found, and the remedy; None where all is right."""

    name: str
    detail: str
    remedy: str | None = None


def doctor(settings: Settings) -> None:
    """Print every check. Raises StartFailed where one finds a fault."""
    with running_servers(settings) as running:
        with connected_engine(running, "doctor") as engine:
            right = print_checks(check_database(engine))
        right &= print_checks(_check_machine(running))
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
    yield _check_models(work, versions)


def _check_server(connection: Connection) -> Iterator[Result]:
    version, recovers, now = connection.execute(
        text("select current_setting('server_version_num')::int, pg_is_in_recovery(), clock_timestamp()")
    ).one()
    shown = f"PostgreSQL {version // 10_000}.{version % 10_000}"
    remedy = "Promote it, or give the address of the primary." if recovers else None
    yield Result("server", f"{shown}, which only reads." if recovers else shown, remedy)
    try:
        yield Result("tools", str(find_folder(version // 10_000)))
    except StartFailed as error:
        yield Result("tools", str(error), "Without them there are no backups.")
    seconds = abs((datetime.now(UTC) - now).total_seconds())
    late = "Let both machines set their clocks by the network." if seconds > MAX_CLOCK_SECONDS else None
    yield Result("clock", f"{seconds:.1f} s from the server's", late)


def _check_models(work: WorkFactory, versions: list[tuple[object, Pointer]]) -> Result:
    """Each as a process that serves it for the first time: bytes, digest and golden rows."""
    faults = []
    for project, pointer in versions:
        before = PROJECT.set(project)  # type: ignore[arg-type]  # a UUID
        try:
            opened(work, pointer, stored(work, pointer))
        except ValiantError as error:
            faults.append(f"{pointer.model}/{pointer.version}: {error.detail or error.title}")
        finally:
            PROJECT.reset(before)
    if faults:
        return Result("models", f"{'; '.join(faults)}.", "Restore a backup, or train them again.")
    return Result("models", f"{len(versions)} predict their golden rows alike")


def _check_machine(settings: Settings) -> Iterator[Result]:
    room = free(settings.data)
    crowded = room < settings.reserve_bytes
    remedy = "Free room: uploads and jobs are refused." if crowded else None
    yield Result("disk", f"{room // MiB} MiB are free at {settings.data}", remedy)
    compiled, count = count_compiled()
    late = "" if compiled == count else "; a worker compiles the others beside its jobs, and `valiant warm` at once"
    yield Result("kernels", f"{compiled} of {count} are compiled for {tag()}{late}")
    if settings.cache_url is not None:
        url = settings.cache_url.get_secret_value()
        yield _check_redis("cache", lambda: _read_policy(Redis.from_url(url, socket_timeout=REDIS_SECONDS)), "allkeys-")
    if settings.broker_url is not None:
        yield _check_redis("broker", lambda: _read_policy_of_broker(settings), "noeviction")


def _read_policy(client: Redis) -> str:
    values = client.config_get("maxmemory-policy")
    (policy,) = values.values()
    return policy.decode() if isinstance(policy, bytes) else str(policy)


def _read_policy_of_broker(settings: Settings) -> str:
    celery = make_celery(settings)
    with celery.connection_for_read() as connection:
        connection.ensure_connection(max_retries=1, interval_start=0, interval_step=0, timeout=REDIS_SECONDS)
        return _read_policy(connection.default_channel.client)


def _check_redis(name: str, read: Callable[[], str], policy: str) -> Result:
    try:
        actual = read()
    except (RedisError, KombuError, OSError) as error:
        return Result(
            name, f"its policy is unknown ({type(error).__name__}).", f"See that VALIANT_{name.upper()}_URL responds."
        )
    remedy = (
        None if actual.startswith(policy) else f"Set maxmemory-policy to {policy}{'lfu' if policy[-1] == '-' else ''}."
    )
    return Result(name, f"maxmemory-policy is {actual}", remedy)
