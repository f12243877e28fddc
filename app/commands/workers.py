"""`valiant workers`: workers that the database knows, what each runs, and the queue before them."""

from sqlalchemy import Connection, text

from app.base.settings import Settings
from app.commands.maintained_database import connected_engine, maintenance, running_servers

WORKERS = text(
    "select w.name, extract(epoch from clock_timestamp() - w.seen_at)::float, w.compiling, "
    "array(select j.kind || ' ' || left(j.id::text, 13) from jobs j where j.lease_holder = w.holder and "
    "j.state = 'running' order by j.id) from workers w order by w.name"
)
QUEUE = text(
    "select count(*), coalesce(extract(epoch from clock_timestamp() - min(created_at)), 0)::float from jobs "
    "where state = 'queued'"
)


def print_workers(settings: Settings) -> None:
    """Print a line for each worker, then one for the queue. Raises StartFailed."""
    with (
        running_servers(settings) as running,
        connected_engine(running, "workers") as engine,
        maintenance(engine) as connection,
    ):
        print("\n".join(list_workers(connection, running)))


def list_workers(connection: Connection, settings: Settings) -> list[str]:
    """Lines that are printed."""
    lines = [_line(settings.lease_seconds, *row) for row in connection.execute(WORKERS)]
    waiting, oldest = connection.execute(QUEUE).one()
    queue = f"{waiting} jobs wait, the first for {oldest:.0f} s" if waiting else "no job waits"
    return [*(lines or ["no worker is known"]), f"queue: {queue}"]


def _line(lease_seconds: float, name: str, age: float, compiling: str | None, jobs: list[str]) -> str:
    state = "alive" if age <= lease_seconds else "SILENT"
    work = ", ".join(jobs) if jobs else "idle"
    return f"{name}: {state}, seen {age:.0f} s ago, {work}{f', {compiling}' if compiling else ''}"
