"""A full disk: refused clearly while there is no room, served again without hands once there is, no job lost."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import httpx
import psutil
import pytest
from psycopg.errors import DiskFull
from sqlalchemy.exc import OperationalError

from app.api.edge.database_problems import HANDLERS
from app.api.edge.problems import response_to
from app.base.settings import MiB, Settings
from app.processes import disk_space as disk
from app.processes.disk_space import Reserve, crowded, demand_room, free
from app.store.unit_of_work import WorkFactory

SCOPE = {"type": "http", "method": "POST", "path": "/v1/jobs", "headers": [], "request_id": "1"}
SCOPE["app"] = SimpleNamespace(problem_handlers=HANDLERS)
RESERVE = 32 * MiB
HASTY = {"LEASE_SECONDS": 3, "SWEEP_SECONDS": 1, "REPUBLISH_SECONDS": 1, "LOG_LEVEL": "ERROR", "RESERVE_BYTES": RESERVE}


@pytest.fixture
def room(monkeypatch):
    """Makes the disk as full as a test wants it: `room(bytes)`."""

    def leave(size):
        monkeypatch.setattr(disk, "free", lambda _: size)

    return leave


def test_the_reserve_is_taken_given_back_and_taken_again(data_folder, room):
    (data_folder / "postgres").mkdir()
    reserve, file = Reserve(data_folder, MiB), data_folder / "reserve"
    room(2 * MiB - 1)
    reserve.restore()
    assert not file.exists()
    room(2 * MiB)
    reserve.restore()
    assert file.stat().st_size == MiB
    assert file.stat().st_blocks * 512 >= MiB  # set aside, not promised
    assert not reserve.release()  # nobody needs it
    room(MiB // 2 - 1)
    assert reserve.release()
    assert not file.exists()
    assert not reserve.release()


def test_a_new_database_needs_more_room_than_one_that_exists(data_folder):
    reserve = Reserve(data_folder, 64 * MiB)
    new = reserve.needed
    (data_folder / "postgres").mkdir()
    assert new > 64 * MiB > reserve.needed


def test_without_a_reserve_nothing_is_kept_and_nothing_refused(data_folder, room):
    (data_folder / "postgres").mkdir()
    room(0)
    reserve = Reserve(data_folder, 0)
    reserve.restore()
    assert list(data_folder.glob("reserve*")) == []
    assert not reserve.short
    demand_room(Settings(data=data_folder, reserve_bytes=0))


def test_room_is_measured_where_a_folder_would_be_made(data_folder):
    assert abs(free(data_folder / "not" / "yet") - shutil.disk_usage(data_folder).free) < 1 << 30
    assert not crowded(data_folder)


def test_a_crowded_disk_refuses_uploads_and_jobs_and_says_so(client, room, add_iris, services):
    dataset = str(add_iris(services.work))
    job = {"dataset": dataset, "target": "species", "model": "m", "algorithm": {"name": "logistic"}}
    room(MiB)
    for refused in (
        client.post("/v1/datasets?name=more", content=b"a,b\n1,2\n"),
        client.post("/v1/jobs/train", json=job),
    ):
        assert refused.status_code == 507
        assert refused.json()["code"] == "storage_full"
        assert "64 MiB" in refused.json()["detail"]
    assert client.get(f"/v1/datasets/{dataset}").status_code == 200
    room(1 << 40)
    assert client.post("/v1/jobs/train", json=job).status_code == 202


def test_a_full_disk_of_the_database_is_named():
    refused = response_to(SCOPE, OperationalError("insert", {}, DiskFull("could not extend file")))
    assert refused.status_code == 507
    assert b"storage_full" in refused.body


@pytest.mark.parametrize("until_room", [True, False])
def test_the_end_of_a_job_waits_for_room_and_a_request_does_not(services, until_room):
    attempts = []

    def decide(_):
        attempts.append(1)
        if len(attempts) < 3:
            raise OperationalError("update", {}, DiskFull("could not extend file"))
        return "done"

    work = WorkFactory(services.work.engine)
    if until_room:
        assert work.retry(decide, until_room=True) == "done"
    else:
        with pytest.raises(OperationalError):
            work.retry(decide)
        assert len(attempts) == 1


# a real disk


@pytest.fixture
def small_disk():
    """A folder on a disk of 400 MiB. To mount one, we must be root or may become it without a password."""
    path = Path(tempfile.mkdtemp(prefix="valiant-disk-"))
    root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    subprocess.run([*root, "mount", "-t", "tmpfs", "-o", "size=400m,mode=755", "none", path], check=True)
    try:
        yield path
    finally:
        subprocess.run([*root, "umount", "--lazy", path], check=True)
        path.rmdir()


class Up:
    """`valiant up` whose messages go to a file on another disk."""

    def __init__(self, folder, messages):
        self.messages = messages
        settings = {f"VALIANT_{name}": str(value) for name, value in HASTY.items()}
        command = [sys.executable, "-P", "-m", "app.cli", "up", "--data", str(folder), "--port", "0"]
        with messages.open("wb") as file:
            self.process = subprocess.Popen(command, env=os.environ | settings, stderr=file)

    def until_printed(self, pattern):
        return until(lambda: re.search(pattern, self.messages.read_text()), self)

    @property
    def address(self):
        return self.until_printed(r"Valiant is at (http://\S+:\d+)")[1]

    def server(self, part):
        family = psutil.Process(self.process.pid).children()
        return next(child for child in family if child.name() == part and child.status() != psutil.STATUS_ZOMBIE)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(90)


def until(condition, up, seconds=120):
    end = time.monotonic() + seconds
    while not (found := attempt(condition)):
        assert time.monotonic() < end, up.messages.read_text()[-5000:]
        time.sleep(0.1)
    return found


def attempt(condition):
    with suppress(httpx.TransportError, StopIteration, psutil.Error):
        return condition()


def fill(folder):
    """Take all room there is."""
    with (folder / "filler").open("ab", buffering=0) as file, suppress(OSError):
        while file.write(b"\0" * 4096):
            pass


@pytest.fixture
def start(data_folder):
    """`start(folder)`: `valiant up` on that folder."""
    started = []

    def up(folder):
        started.append(Up(folder, data_folder / f"{len(started)}.log"))
        return started[-1]

    yield up
    for one in started:
        if one.process.poll() is None:
            one.end()


@pytest.mark.slow
def test_a_disk_that_was_full_needs_no_hands(small_disk, start):
    folder = small_disk / "var"
    up = start(folder)
    api = httpx.Client(base_url=up.address, timeout=30, trust_env=False)
    rows = "".join(f"{n},{n * n % 17},{'ab'[n % 2]}\n" for n in range(300)).encode()
    dataset = api.post("/v1/datasets?name=rows", content=b"x,y,z\n" + rows).json()["id"]

    def submit():
        request = {"dataset": dataset, "target": "z", "model": "m", "algorithm": {"name": "logistic"}}
        return api.post("/v1/jobs/train", json=request)

    def state(job):
        return api.get(f"/v1/jobs/{job}").json().get("state")

    until((folder / "reserve").exists, up)
    accepted = [submit().json()["id"] for _ in range(4)]
    fill(small_disk)
    refused = submit()
    assert (refused.status_code, refused.json()["code"]) == (507, "storage_full")
    assert api.post("/v1/datasets?name=more", content=b"a\n1\n").status_code == 507

    up.server("postgres").kill()  # as a database does that cannot write its log
    up.until_printed("the reserved room is given to the database")
    until(lambda: api.get("/readyz").is_success, up)
    for job in accepted:
        until(lambda job=job: state(job) == "succeeded", up)
    assert submit().status_code == 507

    fill(small_disk)
    up.server("postgres").kill()
    assert up.process.poll() is None
    assert up.end() == 0

    again = start(folder)
    again.until_printed("Waiting for room")
    assert again.process.poll() is None
    (small_disk / "filler").unlink()
    api = httpx.Client(base_url=again.address, timeout=30, trust_env=False)
    assert [state(job) for job in accepted] == ["succeeded"] * len(accepted)
    until((folder / "reserve").exists, again)
    job = submit().json()["id"]
    until(lambda: state(job) == "succeeded", again)
    assert again.end() == 0
