"""The stack on a machine that has no time for it: it becomes slow, and nothing else."""

import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import httpx
import psutil
import pytest

from tests.test_cli import Up

LOOPS, LOOP_SECONDS = 12, 45
"""Busy loops, which end by themselves: longer than a lease lasts, and than the watchdog waits here."""
BUSY = "import sys, time\nend = time.monotonic() + float(sys.argv[1])\nwhile time.monotonic() < end: pass"
PATIENCE = 300
"""Seconds until the test gives up; no promise is measured by it."""


def starve(processes):
    """Let them have what others leave, also where sessions share a processor and not processes."""
    for process in processes:
        with suppress(psutil.Error, OSError):
            process.nice(19)
            Path(f"/proc/{process.pid}/autogroup").write_text("19")


@pytest.fixture
def busy():
    """Starts the loops."""
    loops = []

    def start():
        command = [sys.executable, "-c", BUSY, str(LOOP_SECONDS)]
        loops.extend(subprocess.Popen(command, start_new_session=True) for _ in range(LOOPS))
        return loops

    yield start
    for loop in loops:
        loop.kill()
        loop.wait()


@pytest.fixture
def up(tmp_path):
    made = Up(tmp_path / "var", VALIANT_WATCHDOG_SECONDS="10")
    yield made
    made.process.kill()  # the parts end with it
    made.process.wait()


@pytest.mark.slow
def test_a_starved_stack_restarts_nothing_and_runs_nothing_twice(up, busy):
    family = psutil.Process(up.process.pid).children(recursive=True)
    parts = {child.pid for child in up.children()}
    (template,) = (child for child in family if "workers.template" in child.cmdline() and child.ppid() in parts)
    with httpx.Client(base_url=up.address, timeout=PATIENCE, trust_env=False) as api:
        rows = "x,y\n" + "".join(f"{n % 11},{n % 7}\n" for n in range(50))
        dataset = api.post("/v1/datasets?name=rows", content=rows.encode()).json()["id"]
        starve([psutil.Process(up.process.pid), *family])
        loops = busy()
        request = {"dataset": dataset, "target": "y", "model": "m", "algorithm": {"name": "ridge"}}
        jobs = [api.post("/v1/jobs/train", json=request).json()["id"] for _ in range(3)]
        while any(loop.poll() is None for loop in loops):
            assert api.get("/livez").is_success
            time.sleep(1)
        end = time.monotonic() + PATIENCE
        while any((job := api.get(f"/v1/jobs/{each}").json())["state"] != "succeeded" for each in jobs):
            assert time.monotonic() < end, job
            assert job["state"] in {"queued", "running"}, job
            time.sleep(0.2)
        assert [api.get(f"/v1/jobs/{each}").json()["attempt"] for each in jobs] == [1, 1, 1]
        states = [line["state"] for each in jobs for line in api.get(f"/v1/jobs/{each}").json()["transitions"]]
        assert states == ["queued", "running", "succeeded"] * 3
    assert {child.pid for child in up.children()} == parts
    assert template.is_running()
    code, alive, messages = up.end()
    assert (code, alive) == (0, [])
    assert "ended" not in messages
    assert "replaced" not in messages
