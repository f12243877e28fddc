"""The embedded stack: real servers that start, stop, and start again after anything."""

import contextlib
import importlib.util
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import psycopg
import pytest
from redis import Redis

from app.base.errors import StartFailed
from app.base.settings import Settings
from app.commands.up import connections
from app.embedded.child_process import LAUNCH
from app.embedded.data_folder import CAP_DAC_READ_SEARCH, Folder
from app.embedded.postgres import postgres
from app.embedded.redis import broker
from app.embedded.stack import Stack

# Enters a stack, says so, and stays until its input ends.
HOLD = """
import sys, json
from pathlib import Path
from app.embedded.stack import Stack
from app.base.settings import Settings
with Stack(Settings(data=Path(sys.argv[1]))) as stack:
    print(json.dumps([server.pid for server in stack.servers.values()]), flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def used_folder():
    """A folder that has been used before: what most starts find, and quicker than a new one each time."""
    path = Path(tempfile.mkdtemp(prefix="valiant-test-"))
    with Stack(Settings(data=path)):
        pass
    yield path
    shutil.rmtree(path)


def connect(settings):
    return psycopg.connect(settings.database_url.get_secret_value().replace("+psycopg", ""), autocommit=True)


def inhabitants(folder):
    """Everything whose working folder is inside `folder`."""

    def inside(process):
        try:
            return Path(process.cwd()).is_relative_to(folder.resolve())
        except (psutil.Error, OSError):
            return False

    return [process for process in psutil.process_iter() if inside(process)]


def hold(folder, *, before=()):
    """A process that holds a stack on `folder`, and the pids of its servers."""
    command = [*before, sys.executable, "-c", HOLD, str(folder)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return process, json.loads(process.stdout.readline())


def end(holder, *, kill):
    """Kill it, or let it leave by itself; either way it is gone afterwards."""
    if kill:
        holder.kill()
    holder.communicate()


def ended(process):
    """True if it runs no more, whether or not its parent has read how it ended."""
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_second_start_finds_the_data_and_the_first_left_nothing_running(data_folder):
    with Stack(Settings(data=data_folder)) as stack:
        with connect(stack.settings) as connection:
            connection.execute("create table kept as select 1 as x")
        broker_client = Redis(unix_socket_path=str(stack.folder.sockets / "broker.sock"))
        broker_client.set("kept", "1")
        broker_client.close()
        assert len(inhabitants(data_folder)) > 3
    assert inhabitants(data_folder) == []
    with Stack(Settings(data=data_folder)) as stack, connect(stack.settings) as connection:
        assert connection.execute("select x from kept").fetchall() == [(1,)]
        with Redis(unix_socket_path=str(stack.folder.sockets / "broker.sock")) as client:
            assert client.get("kept") == b"1"


def test_servers_are_set_as_promised(settings, stack):
    with connect(settings) as connection:

        def show(name):
            return connection.execute(f"show {name}").fetchone()[0]

        assert show("synchronous_commit") == "on"
        assert show("fsync") == "on"
        assert show("data_checksums") == "on"
        assert show("listen_addresses") == ""
        assert show("server_encoding") == "UTF8"
        assert connection.execute("select 'B' < 'a', lower('Ä')").fetchone() == (True, "ä")
    with Redis(unix_socket_path=str(stack.folder.sockets / "broker.sock")) as client:
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert client.config_get("appendonly") == {"appendonly": "yes"}
    with Redis.from_url(settings.cache_url.get_secret_value()) as client:
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "allkeys-lfu"}
        assert client.config_get("maxmemory") == {"maxmemory": str(settings.cache_memory_bytes)}


def test_postgres_takes_as_many_connections_as_the_pools_may_open(data_folder):
    expected = Settings(data=data_folder, database_pool=60, worker_concurrency=10)
    needed = 60 + 3 * (3 * 10 + 2)
    with Stack(expected, connections=connections(expected, workers=3)) as stack, connect(stack.settings) as connection:
        assert int(connection.execute("show max_connections").fetchone()[0]) >= needed + 10


def test_only_their_owner_reaches_the_sockets(stack):
    sockets = list(stack.folder.sockets.iterdir())
    assert {path.name for path in sockets} >= {"broker.sock", "cache.sock", ".s.PGSQL.5432"}
    assert stack.folder.sockets.stat().st_mode & 0o077 == 0


def test_the_second_start_on_one_folder_says_who_has_it(data_folder):
    with Folder(data_folder), pytest.raises(StartFailed, match=rf"in use by another valiant \(process {os.getpid()}\)"):
        Stack(Settings(data=data_folder)).__enter__()


def test_servers_end_with_a_killed_parent_and_the_folder_opens_again(used_folder):
    holder, pids = hold(used_folder)
    servers = [psutil.Process(pid) for pid in pids]
    end(holder, kill=True)
    with Stack(Settings(data=used_folder)) as stack, connect(stack.settings) as connection:
        assert connection.execute("select 1").fetchone() == (1,)
        assert all(ended(server) for server in servers)


def test_everything_killed_at_once_blocks_nothing(used_folder):
    holder, _ = hold(used_folder)
    for process in [psutil.Process(holder.pid), *inhabitants(used_folder)]:
        with contextlib.suppress(psutil.NoSuchProcess):  # each takes others with it
            process.kill()
    end(holder, kill=True)
    with Stack(Settings(data=used_folder)) as stack, connect(stack.settings) as connection:
        assert connection.execute("select 1").fetchone() == (1,)


def test_leftover_servers_are_ended(used_folder):
    with Folder(used_folder) as folder:
        folder.clear_sockets()
        left = [postgres(folder, connections=20), broker(folder)]
        for child in left:
            child.start()
    with Stack(Settings(data=used_folder)) as stack:
        assert not any(child.alive for child in left)
        assert stack.servers["postgres"].alive


def test_a_stranger_in_the_folder_is_left_alone(used_folder):
    stranger = subprocess.Popen(["sleep", "600"], cwd=used_folder)
    try:
        with Stack(Settings(data=used_folder)):
            assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_lock_files_with_a_reused_pid_block_nothing(used_folder):
    with Stack(Settings(data=used_folder)) as stack:
        account = stack.folder.account
        cluster, sockets = used_folder / "postgres", stack.folder.sockets
    who = {"user": account.uid, "group": account.gid} if account else {}
    bystander = subprocess.Popen(["sleep", "600"], **who)  # what has the pid by now
    try:
        lines = f"{bystander.pid}\n{cluster}\n1\n5432\n{sockets}\n\n0 0\nready\n"
        for lock in (cluster / "postmaster.pid", sockets / ".s.PGSQL.5432.lock"):
            lock.write_text(lines)
            os.chown(lock, cluster.stat().st_uid, -1)
        with Stack(Settings(data=used_folder)) as stack, connect(stack.settings) as connection:
            assert connection.execute("select 1").fetchone() == (1,)
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_an_interrupted_initialisation_is_begun_again(data_folder):
    (data_folder / "postgres.new").mkdir()
    (data_folder / "postgres.new" / "PG_VERSION").write_text("18\n")
    with Stack(Settings(data=data_folder)) as stack, connect(stack.settings) as connection:
        assert connection.execute("select 1").fetchone() == (1,)


def test_a_folder_too_deep_for_sockets(data_folder):
    deep = data_folder / ("d" * 60) / ("e" * 60)
    with Stack(Settings(data=deep)) as stack, connect(stack.settings) as connection:
        assert connection.execute("select 1").fetchone() == (1,)
        sockets = stack.folder.sockets
        assert not sockets.is_relative_to(deep)
    assert not sockets.exists()


def test_servers_killed_one_by_one_come_back(stack_factory):
    stack = stack_factory()
    with connect(stack.settings) as connection:
        connection.execute("create table kept as select 1 as x")
    for name in ("postgres", "broker", "cache"):
        stack.servers[name].kill()
        stack.servers[name].start()
    with connect(stack.settings) as connection:
        assert connection.execute("select x from kept").fetchall() == [(1,)]


def test_works_as_an_ordinary_user(data_folder):
    """As root we become one, keeping only the right to read the interpreter wherever it is installed."""
    before = ()
    if os.geteuid() == 0:
        user = pwd.getpwnam("nobody")
        os.chown(data_folder, user.pw_uid, user.pw_gid)
        plan = {"parent": os.getpid(), "signal": int(signal.SIGTERM), "uid": user.pw_uid, "gid": user.pw_gid}
        before = (sys.executable, "-I", "-S", str(LAUNCH), json.dumps(plan | {"capability": CAP_DAC_READ_SEARCH}))
    holder, pids = hold(data_folder, before=before)
    try:
        users = {psutil.Process(pid).uids().effective for pid in pids}
        assert 0 not in users
        assert users == {psutil.Process(holder.pid).uids().effective}
    finally:
        end(holder, kill=False)


def test_given_addresses_are_used_as_they_are(data_folder, settings):
    given = settings.model_copy(update={"data": data_folder})
    with Stack(given) as stack:
        assert stack.servers == {}
        assert stack.settings.database_url == settings.database_url


def test_what_is_missing_is_reported_with_its_remedy(data_folder, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", str(data_folder))
    with Folder(data_folder) as folder:
        with pytest.raises(StartFailed, match=r"valiant\[embedded\].*VALIANT_DATABASE_URL"):
            postgres(folder, connections=20)
        with pytest.raises(StartFailed, match=r"redis-server or valkey-server.*VALIANT_BROKER_URL"):
            broker(folder)


@pytest.mark.parametrize("program", ["redis-server", "valkey-server"])
def test_a_redis_on_the_path_serves(data_folder, monkeypatch, program):
    with Folder(data_folder) as folder:
        server = broker(folder).command[0]
    (data_folder / "bin").mkdir()
    (data_folder / "bin" / program).symlink_to(server)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", str(data_folder / "bin"))
    with Folder(data_folder) as folder:
        folder.clear_sockets()
        child = broker(folder)
        assert child.command[0] == str(data_folder / "bin" / program)
        child.start()
        child.stop()


def test_a_server_that_cannot_start_says_why(data_folder):
    with Folder(data_folder) as folder:
        folder.clear_sockets()
        child = broker(folder)
        child.command = [*child.command, "--nonsense", "1"]
        with pytest.raises(StartFailed, match=r"(?s)broker has ended.*nonsense"):
            child.start()


def test_a_folder_that_cannot_be_made_is_reported(data_folder):
    (data_folder / "file").write_text("")
    with pytest.raises(StartFailed, match="cannot be used"):
        Stack(Settings(data=data_folder / "file" / "var")).__enter__()


def test_nothing_listens_on_the_network(stack):
    for server in stack.servers.values():
        family = [psutil.Process(server.pid), *psutil.Process(server.pid).children()]
        assert [each for process in family for each in process.net_connections("inet")] == []
        assert any(each.family == socket.AF_UNIX for each in psutil.Process(server.pid).net_connections("unix"))
