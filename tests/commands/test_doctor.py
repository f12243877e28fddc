"""`valiant doctor` and `valiant workers` on a deployment with faults, each of which is real: none is simulated."""

import contextlib
import datetime as dt
import socket
import subprocess
import time
from uuid import uuid4

import psycopg
import pyarrow as pa
import pytest
from pydantic import SecretStr
from redis import ConnectionError as RedisUnreachable
from redis import Redis

from app.cli import main
from app.embedded import redis
from app.store.engine import make_engine
from app.store.unit_of_work import WorkFactory
from migrations.schema_revision import upgrade
from tests.clusters import address, administer, cluster

pytestmark = pytest.mark.slow
FAULTS = {
    "connections": " of 9 are used",
    "datasets": "1 lack some of their bytes.",
    "files": "1 lack some of their bytes.",
    "model versions": "1 lack some of their bytes.",
    "models": "ill/1:",
    "workers": "0 are alive, 1 jobs wait",
    "disk": "MiB are free",
    "folder": "cannot be written",
    "settings": "VALIANT_DRIAN_SECONDS (is it VALIANT_DRAIN_SECONDS?)",
    "certificate": "expires in 1 days",
    "servers": "broker and cache are the same",
    "broker": "maxmemory-policy is allkeys-lru",
}


@pytest.fixture(scope="module")
def server():
    with cluster(18, max_connections="12") as (folder, _):
        administer(folder, "create role valiant login createrole")
        yield folder


@pytest.fixture
def cache(tmp_path):
    """The URL of a Redis that forgets what is least used lately."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = ("--port", str(port), "--save", "", "--maxmemory-policy", "allkeys-lru", "--dir", str(tmp_path))
    process = subprocess.Popen([redis._program("cache"), *words], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with contextlib.suppress(RedisUnreachable):
            Redis(port=port).ping()
            break
        time.sleep(0.02)
    yield f"redis://127.0.0.1:{port}/0"
    process.terminate()
    process.wait()


@pytest.fixture
def filled(server, settings, add_table, publish):
    """The address of a database with a dataset and a model."""
    name = f"d{uuid4().hex}"
    with psycopg.connect(address(server), autocommit=True) as administrator:
        administrator.execute(f"create database {name} owner valiant")
    url = address(server, "valiant", name)
    upgrade(url)
    engine = make_engine(settings.model_copy(update={"database_url": SecretStr(url)}), role="test")
    add_table(WorkFactory(engine), pa.table({"a": list(range(1000))}), times=3)
    publish(WorkFactory(engine), "ill")
    engine.dispose()
    return url


@pytest.fixture
def deployment(filled, cache, monkeypatch, tmp_path):
    """The address of its database; every variable that commands need is set."""
    url = filled
    monkeypatch.setenv("VALIANT_DATABASE_URL", url)
    monkeypatch.setenv("VALIANT_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("VALIANT_CACHE_URL", cache)
    return url


def execute(url, *statements):
    with psycopg.connect(url) as connection:
        connection.execute("set valiant.maintenance = 'on'")
        for statement in statements:
            connection.execute(statement)


def found(capsys):
    """Name → text of each fault that the doctor prints."""
    capsys.readouterr()
    code = main(["doctor"])
    lines = capsys.readouterr().out.splitlines()
    faults = dict(line.removeprefix("FAULT ").split(": ", 1) for line in lines if line.startswith("FAULT"))
    assert code == bool(faults)
    return faults


@pytest.fixture
def misconfigured(cache, certificate, monkeypatch, tmp_path):
    """`misconfigured()` sets variables that are wrong, each in a way of its own."""

    def misconfigure():
        (tmp_path / "file").touch()
        for name, value in {
            "VALIANT_RESERVE_BYTES": 1 << 60, "VALIANT_SPOOL": tmp_path / "file", "VALIANT_DRIAN_SECONDS": 3,
            "VALIANT_TLS_CERT": certificate[0], "VALIANT_TLS_KEY": certificate[1], "VALIANT_BROKER_URL": cache,
        }.items():  # fmt: skip
            monkeypatch.setenv(name, str(value))

    return misconfigure


def test_finds_twelve_faults_by_name_and_no_other(deployment, misconfigured, capsys):
    assert found(capsys) == {}
    execute(
        deployment,
        "delete from dataset_chunks where seq = 1",
        "delete from model_chunks where seq = 0",
        "insert into files (id, project_id, digest, size_bytes) "
        "select gen_random_uuid(), project_id, 'd', 5 from datasets limit 1",
        "insert into jobs (id, project_id, kind, state, request, request_hash, max_attempts, time_limit_seconds) "
        "select gen_random_uuid(), project_id, 'train', 'queued', '{}', 'h', 3, 60 from datasets limit 1",
    )
    misconfigured()
    with contextlib.ExitStack() as held:
        for _ in range(5):
            held.enter_context(psycopg.connect(deployment))
        faults = found(capsys)
    assert faults.keys() == FAULTS.keys()
    for name, text in FAULTS.items():
        assert text in faults[name], name
        assert faults[name].rstrip().endswith("."), name  # the remedy, a sentence


def test_a_schema_of_before_and_a_missing_privilege_are_found(deployment, capsys):
    execute(deployment, "revoke select on datasets from valiant_app")
    assert "valiant migrate" in found(capsys)["access"]
    assert main(["migrate"]) == 0
    execute(deployment, "update alembic_version set version_num = '0001'")
    assert found(capsys)["schema"].endswith("Run `valiant migrate`.")


def test_servers_that_are_away_are_found(deployment, monkeypatch, capsys):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    monkeypatch.setenv("VALIANT_CACHE_URL", f"redis://127.0.0.1:{port}/0")
    monkeypatch.setenv("VALIANT_BROKER_URL", f"redis://127.0.0.1:{port}/1")
    faults = found(capsys)
    assert {"cache", "broker"} <= faults.keys()
    assert "VALIANT_CACHE_URL" in faults["cache"]


def test_workers_are_listed_with_what_they_run(deployment, capsys):
    execute(
        deployment,
        "delete from jobs",
        "insert into workers (name, seen_at, holder) values "
        "('a', clock_timestamp(), '00000000-0000-0000-0000-000000000001'), "
        "('b', clock_timestamp() - interval '5 minutes', null)",
        "insert into jobs (id, project_id, kind, state, request, request_hash, max_attempts, time_limit_seconds, "
        "lease_token, lease_until, lease_holder) select '019c2f6e-7d3a-7b1c-9f58-2f4a6f0c1d2e', project_id, 'train', "
        "'running', '{}', 'h', 3, 60, gen_random_uuid(), now(), '00000000-0000-0000-0000-000000000001' from datasets "
        "limit 1",
    )
    assert main(["workers"]) == 0
    first, second, queue = capsys.readouterr().out.splitlines()
    assert first.startswith("a: alive, seen ")
    assert "train 019c2f6e-7d3a" in first
    assert second.startswith("b: SILENT, seen 300 s ago, idle")
    assert queue == "queue: no job waits"


def test_a_backup_is_stated_in_the_database(deployment, server, tmp_path, capsys):
    if main(["backup", str(tmp_path / "valiant.dump")]):
        pytest.fail(capsys.readouterr().err)
    with psycopg.connect(deployment) as connection:
        (comment,) = connection.execute("select obj_description('alembic_version'::regclass, 'pg_class')").fetchone()
    stated = dt.datetime.fromisoformat(comment.removeprefix("newest backup: "))
    assert abs(dt.datetime.now(dt.UTC) - stated) < dt.timedelta(minutes=10)
    main(["doctor"])
    assert f"ok    backup: the newest is of {stated}" in capsys.readouterr().out
