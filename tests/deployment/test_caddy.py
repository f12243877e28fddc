"""The configuration of Caddy, run: TLS before the API, and its Host, events and bodies pass as they are."""

import os
import shutil
import socket
import ssl
import subprocess
import time
from pathlib import Path

import httpx
import pytest

from app.processes.ports import listen

pytestmark = pytest.mark.slow  # Caddy is no Python package: only .ci/run installs it
SHIPPED = Path(__file__).parents[2] / "app" / "deployment" / "Caddyfile"


def free_port():
    with listen("127.0.0.1", 0) as listener:
        return listener.getsockname()[1]


@pytest.fixture(scope="module")
def secure(api_factory, certificate, tmp_path_factory):
    """A client of an API behind Caddy, and the port where Caddy speaks HTTP without TLS."""
    program = shutil.which("caddy")
    assert program, "This needs Caddy, which is not on the PATH: apt-get install caddy"
    home, plain, port = tmp_path_factory.mktemp("caddy"), free_port(), free_port()
    cert, key = certificate
    _, behind = api_factory()
    variables = {
        "HOME": str(home), "XDG_DATA_HOME": str(home), "XDG_CONFIG_HOME": str(home),
        "SITE": "127.0.0.1", "SITE_TLS": f"tls {cert} {key}", "UPSTREAM": f"127.0.0.1:{httpx.URL(behind).port}",
        "HTTP_PORT": str(plain), "HTTPS_PORT": str(port),
    }  # fmt: skip
    command = [program, "run", "--config", str(SHIPPED), "--adapter", "caddyfile"]
    process = subprocess.Popen(command, env=os.environ | variables, stderr=subprocess.DEVNULL)
    try:
        wait_for(process, port)
        trusted = ssl.create_default_context(cafile=str(cert))
        with httpx.Client(base_url=f"https://127.0.0.1:{port}", verify=trusted) as client:
            yield client, plain
    finally:
        process.terminate()
        process.wait()


def wait_for(process, port):
    while process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise RuntimeError(f"It ended with code {process.returncode}.")


def test_ends_tls_and_passes_requests(secure):
    client, _ = secure
    response = client.get("/livez")
    assert (response.status_code, response.headers["strict-transport-security"]) == (200, "max-age=31536000")
    made = client.post("/v1/datasets", params={"name": "t", "file_format": "csv"}, content=b"a,b\n1,2\n3,4\n")
    assert made.status_code == 201
    assert client.get("/nothing").json()["code"] == "not_found"


def test_pages_of_the_site_itself_may_use_it(secure):
    client, _ = secure
    mine = client.get("/v1/algorithms", headers={"Origin": str(client.base_url).rstrip("/")})
    foreign = client.get("/v1/algorithms", headers={"Origin": "https://elsewhere.example"})
    assert (mine.status_code, foreign.status_code) == (200, 403)


def test_without_tls_it_refers_to_tls(secure):
    _, plain = secure
    response = httpx.get(f"http://127.0.0.1:{plain}/livez")
    assert response.status_code == 308
    assert response.headers["location"].startswith("https://")
