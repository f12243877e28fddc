"""nginx with the configuration that is shipped; only where it listens and which servers are behind it differ."""

import contextlib
import os
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from app.processes.ports import listen

SHIPPED = Path(__file__).parent.parent / "app" / "deployment" / "nginx.conf"
SERVERS = re.compile(r"resolver .+\n +server api:8000 resolve (.+;).*")
FOLDERS = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"))  # users lack the latter


def binary() -> str:
    found = shutil.which("nginx", path=FOLDERS)
    assert found, "This needs nginx, which is not on the PATH: apt-get install nginx-light"
    return found


def derived(port: int, upstreams: Sequence[int]) -> str:
    """The shipped text with the servers' addresses: only from nginx 1.27.3 on are names resolved at run time."""
    servers = "\n    ".join(rf"server 127.0.0.1:{upstream} \1" for upstream in upstreams)
    text, names = SERVERS.subn(servers, SHIPPED.read_text())
    assert names == text.count("listen 8080;") == 1
    return text.replace("listen 8080;", f"listen 127.0.0.1:{port};")


@contextlib.contextmanager
def nginx(*upstreams: int) -> Iterator[str]:
    """Its address, while it passes requests on to these ports of this machine. It logs to our standard error."""
    folder = Path(tempfile.mkdtemp(prefix="valiant-nginx-"))
    folder.chmod(0o711)  # where we are root, its workers are not
    with listen("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    (folder / "nginx.conf").write_text(derived(port, upstreams))
    process = subprocess.Popen([binary(), "-p", folder, "-c", folder / "nginx.conf"])
    try:
        wait_for(process, port)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder)


def wait_for(process: subprocess.Popen[bytes], port: int) -> None:
    while process.poll() is None:
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
            return
    raise RuntimeError(f"It ended with code {process.returncode}.")
