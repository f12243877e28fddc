"""PgBouncer in transaction mode in front of the tests' Postgres: one connection serves whoever has a transaction."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import make_url

from app.processes.ports import listen
from tests.nginx import FOLDERS, wait_for

CONFIGURATION = """
[databases]
{database} = host={sockets} dbname={database} user={user} pool_size=1
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
pool_mode = transaction
auth_type = any
ignore_startup_parameters = options
"""


def binary() -> str:
    found = shutil.which("pgbouncer", path=FOLDERS)
    assert found, "This needs PgBouncer, which is not on the PATH: apt-get install pgbouncer"
    return found


@contextlib.contextmanager
def pgbouncer(database_url: str) -> Iterator[str]:
    """The URL of the same database behind it, by one connection for all."""
    url = make_url(database_url)
    folder = Path(tempfile.mkdtemp(prefix="valiant-pgbouncer-"))
    folder.chmod(0o711)  # it does not run as root
    with listen("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    sockets = Path(str(url.query["host"]))
    known = {"database": url.database, "user": url.username, "sockets": sockets}
    file = folder / "pgbouncer.ini"
    file.write_text(CONFIGURATION.format(port=port, **known))
    user = {}
    if os.getuid() == 0:  # it refuses to be root, and is let through to the sockets as who Postgres is then
        user = {"user": sockets.stat().st_uid}
        sockets.parent.chmod(0o711)
    process = subprocess.Popen([binary(), "-q", file], **user)
    try:
        wait_for(process, port)
        yield f"postgresql://{url.username}@127.0.0.1:{port}/{url.database}"
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder)
