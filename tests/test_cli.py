"""The console command: what it says when it cannot, and what `up` does when all is well, or not."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import httpx
import psutil
import pytest

from app.cli import main
from app.main import create_app
from tests.api.fast.test_connection import serving

VALIANT = [sys.executable, "-P", "-m", "app.cli"]


def valiant(*arguments, **environment):
    return subprocess.Popen(
        [*VALIANT, *map(str, arguments)], env=os.environ | environment, stderr=subprocess.PIPE, text=True
    )


def failure(capsys, *arguments):
    """Exit code and output."""
    try:
        code = main(arguments)
    except SystemExit as end:
        code = end.code
    return code, capsys.readouterr().err


@pytest.mark.parametrize("command", ["api", "worker", "migrate"])
def test_commands_on_given_servers_name_what_is_not_given(capsys, command):
    code, messages = failure(capsys, command)
    assert code == 1
    assert "VALIANT_DATABASE_URL" in messages
    assert "valiant up" in messages


def test_migrate_without_a_database_is_one_sentence(capsys, monkeypatch):
    monkeypatch.setenv("VALIANT_DATABASE_URL", "postgresql://valiant:hidden@127.0.0.1:1/valiant")
    code, printed = failure(capsys, "migrate")
    assert code == 1
    assert printed.startswith("valiant: The database of VALIANT_DATABASE_URL cannot be migrated: ")
    assert "Connection refused" in printed
    assert printed.count("\n") == 1
    assert "hidden" not in printed


@pytest.mark.parametrize("url", ["nonsense", "postgresql://u:pass@hidden@h/d", "postgresql://u:hidden@h:port/d"])
@pytest.mark.parametrize("command", ["api", "worker", "migrate"])
def test_what_is_no_url_of_a_database_is_one_sentence(capsys, monkeypatch, command, url):
    monkeypatch.setenv("VALIANT_DATABASE_URL", url)
    for name in ("VALIANT_BROKER_URL", "VALIANT_CACHE_URL"):
        monkeypatch.setenv(name, "redis://127.0.0.1:1/0")
    code, printed = failure(capsys, command)
    assert code == 1
    assert "VALIANT_DATABASE_URL is no URL of a database" in printed
    assert "PGPASSWORD" in printed
    assert "hidden" not in printed


def test_health_follows_the_port(capsys, monkeypatch, api_address):
    address = api_address()
    monkeypatch.setenv("VALIANT_PORT", address.rpartition(":")[2])
    assert failure(capsys, "health") == (0, "")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    monkeypatch.setenv("VALIANT_PORT", str(port))
    assert failure(capsys, "health") == (1, f"valiant: Nothing responds at http://127.0.0.1:{port}/livez.\n")
    assert failure(capsys, "health", "--ready") == (
        1,
        f"valiant: Nothing responds at http://127.0.0.1:{port}/readyz.\n",
    )


def test_an_api_that_is_alive_may_not_be_ready(capsys, monkeypatch, settings):
    application = create_app(settings)
    with serving(application) as (port, _):
        monkeypatch.setenv("VALIANT_PORT", str(port))
        until = time.monotonic() + 60
        while failure(capsys, "health", "--ready") != (0, ""):
            assert time.monotonic() < until
        application.state.draining = True
        assert failure(capsys, "health") == (0, "")
        code, printed = failure(capsys, "health", "--ready")
        assert code == 1
        assert printed.startswith("valiant: The API is not ready: The check not_draining fails.")


def test_wrong_settings_are_named_and_not_repeated(capsys, monkeypatch):
    monkeypatch.setenv("VALIANT_PORT", "secret")
    monkeypatch.setenv("VALIANT_MAX_ROWS", "0")
    code, messages = failure(capsys, "up")
    assert code == 2
    assert "VALIANT_PORT" in messages
    assert "VALIANT_MAX_ROWS" in messages
    assert "secret" not in messages


@pytest.mark.parametrize("arguments", [("up", "--workers", "0"), ("up", "--prot", "1"), (), ("down",)])
def test_wrong_arguments(capsys, arguments):
    code, messages = failure(capsys, *arguments)
    assert code == 2
    assert "usage: valiant" in messages


def test_flags_win_over_the_environment(capsys, monkeypatch, data_folder):
    monkeypatch.setenv("VALIANT_PORT", "0")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, messages = failure(capsys, "up", "--data", str(data_folder / "var"), "--port", str(port))
    assert code == 1
    assert f"port {port}" in messages
    assert "--port" in messages
    assert not (data_folder / "var").exists()  # nothing was started in vain


def test_version(capsys):
    assert failure(capsys, "--version")[0] == 0


def test_migrate_on_a_given_database(stack_factory, monkeypatch):
    monkeypatch.setenv("VALIANT_DATABASE_URL", stack_factory().settings.database_url.get_secret_value())
    assert main(["migrate"]) == 0


class Up:
    """A running `valiant up`, and what it says."""

    def __init__(self, folder, **environment):
        self.process = valiant("up", "--data", folder, "--port", 0, VALIANT_LOG_LEVEL="ERROR", **environment)
        self.printed = []
        while (line := self.process.stderr.readline()) and "Ctrl-C" not in line:
            self.printed.append(line)
        self.address = re.search(r"http://\S+:\d+", "".join(self.printed)).group()

    def children(self):
        """By their part: postgres, redis-server twice, api, worker."""
        return [child for child in psutil.Process(self.process.pid).children() if child.status() != "zombie"]

    def of(self, part):
        return next(child for child in self.children() if part in child.cmdline())

    def end(self, number=signal.SIGTERM):
        family = psutil.Process(self.process.pid).children(recursive=True)
        self.process.send_signal(number)
        rest = self.process.communicate()[1]
        _, alive = psutil.wait_procs(family, timeout=15)
        return self.process.returncode, alive, rest


@pytest.fixture(scope="module")
def up_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("up") / "var"


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_up_serves_and_stops_cleanly(up_folder, number):
    up = Up(up_folder)
    _until(lambda: _ready(up.address))
    assert len(up.children()) == 5
    assert "server" not in httpx.get(f"{up.address}/livez").headers
    assert up.end(number)[:2] == (0, [])


@pytest.mark.slow
def test_keys_are_created_before_up_runs_and_while_it_does(tmp_path):
    def create(name, **environment):
        command = [*VALIANT, "keys", "create", "--role", "admin", "--name", name]
        done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout[:4], "not shown again" in done.stderr) == (0, "vlt_", True), done.stderr
        return {"Authorization": f"Bearer {done.stdout.strip()}"}

    folder = tmp_path / "var"
    first = create("first", VALIANT_DATA=str(folder))
    up = Up(folder, VALIANT_AUTH="keys")
    second = create("second", VALIANT_DATA=str(folder))
    assert httpx.get(f"{up.address}/v1/me").status_code == 401
    names = [httpx.get(f"{up.address}/v1/me", headers=each).json()["name"] for each in (first, second)]
    assert names == ["first", "second"]
    assert up.end()[:2] == (0, [])


@pytest.mark.slow
def test_up_starts_again_what_dies(up_folder):
    up = Up(up_folder)
    victims = [up.of("api"), up.of("worker")]
    for victim in victims:
        victim.kill()
    for part in ("api", "worker"):
        _until(lambda part=part: any(part in _command(child) for child in up.children()))
    _until(lambda: _ready(up.address))
    code, alive, messages = up.end()
    assert (code, alive) == (0, [])
    assert "api ended by itself, by signal SIGKILL" in messages
    assert "worker ended by itself, by signal SIGKILL" in messages


@pytest.mark.slow
def test_up_replaces_whatever_part_froze(up_folder):
    """Postgres and both Redis give no sign of life by themselves; the API and a worker do."""
    up = Up(up_folder, VALIANT_LEASE_SECONDS="4")
    _until(lambda: _ready(up.address))
    frozen = up.children()
    assert len(frozen) == 5
    for child in frozen:
        child.suspend()
    _until(lambda: not any(child.is_running() for child in frozen), 120)
    _until(lambda: len(up.children()) == 5 and _ready(up.address), 120)
    code, alive, messages = up.end()
    assert (code, alive) == (0, [])
    for name in ("postgres", "broker", "cache", "api", "worker"):
        assert f"{name} is frozen" in messages


@pytest.mark.slow
def test_a_worker_by_hand_states_that_it_needs_a_supervisor(stack, monkeypatch):
    from app.commands.processes import variables

    for name in ("INVOCATION_ID", "SYSTEMD_EXEC_PID", "SUPERVISOR_ENABLED"):
        monkeypatch.delenv(name, raising=False)
    for changes, count in (({}, 1), ({"INVOCATION_ID": "0" * 32}, 0)):
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "app.cli", "worker"],
            env=os.environ | variables(stack.settings) | changes,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        lines = []
        while (line := process.stdout.readline()) and '"ready"' not in line:
            lines.append(line)
        process.terminate()
        rest = process.communicate()[0]
        assert process.returncode == 0
        assert sum("no_supervisor" in line for line in [*lines, *rest.splitlines()]) == count


@pytest.mark.slow
def test_up_replaces_a_worker_that_froze_and_its_jobs_end(up_folder):
    hasty = {"LEASE_SECONDS": 4, "SWEEP_SECONDS": 0.5, "REPUBLISH_SECONDS": 1}
    poison = str(Path(__file__).with_name("workers") / "poison")
    up = Up(up_folder, PYTHONPATH=poison, **{f"VALIANT_{name}": str(value) for name, value in hasty.items()})
    with httpx.Client(base_url=up.address, timeout=30, trust_env=False) as api:
        rows = "x,y\n" + "".join(f"{n % 11},{n % 7}\n" for n in range(50))
        dataset = api.post("/v1/datasets?name=rows", content=rows.encode()).json()["id"]
        algorithm = {"name": "poison", "how": "work", "seconds": 2}
        request = {"dataset": dataset, "target": "y", "model": "m", "algorithm": algorithm}
        accepted = [api.post("/v1/jobs/train", json=request) for _ in range(2)]
        assert [one.status_code for one in accepted] == [202, 202], accepted[0].text
        jobs = [one.json()["id"] for one in accepted]

        def job(number):
            return api.get(f"/v1/jobs/{jobs[number]}").json()

        _until(lambda: job(0)["state"] == "running")
        frozen = up.of("worker")
        frozen.suspend()
        for number in range(2):
            _until(lambda number=number: job(number)["state"] == "succeeded")
        assert job(0)["attempt"] == 2
        assert not frozen.is_running()
    code, alive, messages = up.end()
    assert (code, alive) == (0, [])
    assert "worker is frozen" in messages


@pytest.mark.slow
def test_up_after_a_kill_finds_the_folder_free(up_folder):
    first = Up(up_folder)
    uploaded = httpx.post(f"{first.address}/v1/datasets?name=kept&file_format=csv", content=b"a,b\n1,2\n3,4\n")
    assert uploaded.status_code == 201
    assert first.end(signal.SIGKILL)[1] == []  # the children noticed
    second = Up(up_folder)
    assert httpx.get(f"{second.address}/v1/datasets/{uploaded.json()['id']}").status_code == 200
    with valiant("up", "--data", up_folder, "--port", 0) as third:
        assert f"process {second.process.pid}" in third.communicate()[1]
    assert third.returncode == 1
    assert second.end()[:2] == (0, [])


def _ready(address):
    try:
        return httpx.get(f"{address}/readyz").is_success
    except httpx.TransportError:
        return False


def _command(process):
    """The words of its command; none if it has just ended."""
    with suppress(psutil.Error):
        return process.cmdline()
    return []


def _until(true, seconds=180):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)
