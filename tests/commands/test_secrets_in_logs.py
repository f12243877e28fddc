"""The log of a whole run, from the migration to servers that are gone, holds no secret that was used in it."""

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import time
from uuid import uuid4

import httpx
import pytest
from redis import ConnectionError as RedisUnreachable
from redis import Redis
from sqlalchemy import make_url

from app.embedded import redis
from migrations.schema_revision import upgrade
from tests.clusters import address, administer, cluster

pytestmark = pytest.mark.slow

VALUE = "canary-value-of-a-cell"
SECRETS = {name: f"{name}-{uuid4().hex}" for name in ("postgres", "redis", "basic", "cookie", "query", "bearer")}
TABLE = "size,colour,price\n" + "".join(f"{n},{VALUE if n % 2 else 'blue'},{n * 1.5}\n" for n in range(40))


@pytest.fixture(scope="module")
def redis_port(tmp_path_factory):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = ["--port", str(port), "--requirepass", SECRETS["redis"], "--dir", str(tmp_path_factory.mktemp("redis"))]
    process = subprocess.Popen([redis._program("broker"), *words], stdout=subprocess.DEVNULL)
    client, deadline = Redis(port=port, password=SECRETS["redis"]), time.monotonic() + 20
    while time.monotonic() < deadline:
        with contextlib.suppress(RedisUnreachable):
            client.ping()
            break
        time.sleep(0.02)
    yield port, process
    process.kill()
    process.wait()


@pytest.fixture(scope="module")
def database():
    """The URL of a database, with a password."""
    with cluster(18) as (folder, _):
        administer(folder, "create role valiant login createrole", "create database valiant owner valiant")
        url = address(folder, "valiant", "valiant")
        upgrade(url)
        yield make_url(url).set(password=SECRETS["postgres"]).render_as_string(hide_password=False)


def wait_until(condition, what):
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        with contextlib.suppress(httpx.HTTPError):
            if condition():
                return
        time.sleep(0.1)
    raise AssertionError(what)


def test_no_secret_is_in_the_log_of_a_whole_run(database, redis_port, tmp_path):
    port, server = redis_port
    with socket.create_server(("127.0.0.1", 0)) as free:
        listening = free.getsockname()[1]
    broker = f"redis://:{SECRETS['redis']}@127.0.0.1:{port}"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("VALIANT_", "PG"))}
    environment = kept | {
        "VALIANT_DATABASE_URL": database, "VALIANT_BROKER_URL": f"{broker}/0", "VALIANT_CACHE_URL": f"{broker}/1",
        "VALIANT_AUTH": "keys", "VALIANT_LOG_LEVEL": "DEBUG", "VALIANT_PORT": str(listening),
        "VALIANT_DATA": str(tmp_path),
    }  # fmt: skip
    log = (tmp_path / "log").open("wb")

    def valiant(*words):
        return [sys.executable, "-m", "app.cli", *words]

    subprocess.run(valiant("migrate"), env=environment, stderr=log, stdout=log, check=True)
    create = valiant("keys", "create", "--role", "admin")
    made = subprocess.run(create, env=environment, stderr=log, stdout=subprocess.PIPE, check=True, text=True)
    keys = [made.stdout.strip()]
    processes = [subprocess.Popen(valiant(part), env=environment, stderr=log, stdout=log) for part in ("api", "worker")]
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{listening}", timeout=60) as client:
            wait_until(lambda: client.get("/readyz").status_code == 200, "not ready")
            keys.append(use(client, keys[0]))
            server.kill()
            wait_until(lambda: client.get("/readyz").status_code in {200, 503}, "no response")
            client.post("/v1/models/canary/predict", json={"columns": ["size"], "data": [[VALUE]]})
            time.sleep(2)  # so that those who miss Redis say so
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(60)
        log.close()
    text = (tmp_path / "log").read_text()
    events = {json.loads(line)["event"] for line in text.splitlines() if line.startswith("{")}
    assert "request" in events  # it is a log
    assert len(events) > 5
    for secret in (*SECRETS.values(), VALUE, *keys, *(key.removeprefix("vlt_") for key in keys)):
        assert [line for line in text.splitlines() if secret in line] == []
    assert not re.search(r"vlt_[A-Za-z0-9_-]{12,}", text)


def use(client, key):
    """Every kind of request with a secret, those that are refused and those that fail; a key that was made."""
    wrong = [
        client.get("/v1/jobs", headers={"Authorization": f"Bearer {SECRETS['bearer']}"}),
        client.get("/v1/jobs", params={"key": SECRETS["query"], "access_token": SECRETS["query"]}),
        client.get("/v1/jobs", auth=("user", SECRETS["basic"])),
        client.get("/v1/jobs", cookies={"valiant": SECRETS["cookie"]}),
    ]
    assert {response.status_code for response in wrong} <= {400, 401, 422}
    client.cookies.clear()
    client.headers["Authorization"] = f"Bearer {key}"
    uploaded = client.post("/v1/datasets", params={"name": "canary", "file_format": "csv"}, content=TABLE.encode())
    assert uploaded.status_code == 201, uploaded.text
    body = {"dataset": uploaded.json()["id"], "target": "price", "model": "canary", "algorithm": {"name": "ridge"}}
    job = client.post("/v1/jobs/train", json=body)
    assert job.status_code == 202, job.text
    address = f"/v1/jobs/{job.json()['id']}"
    wait_until(lambda: client.get(address).json()["state"] not in {"queued", "running"}, "the job did not end")
    assert client.get(address).json()["state"] == "succeeded", client.get(address).text
    rows = {"columns": ["size", "colour"], "data": [[3, VALUE], [4, f"{VALUE}-unknown"]]}
    assert client.post("/v1/models/canary/predict", json=rows).status_code == 200
    assert client.post("/v1/models/canary/predict", json={"columns": ["size"], "data": [[VALUE]]}).status_code == 422
    client.post("/v1/jobs/train", json={**body, "target": VALUE})
    client.post("/v1/jobs/train", content=f'{{"target": "{VALUE}"'.encode())
    made = client.post("/v1/keys", json={"name": "second", "role": "caller"})
    assert made.status_code == 201, made.text
    return made.json()["secret"]
