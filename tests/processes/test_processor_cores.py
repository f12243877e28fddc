"""Cores that a process may use, and the locks by which the jobs of a machine share them."""

import os
import subprocess
import sys
import threading

import pytest

from app.base.settings import GiB, Settings
from app.processes import processor_cores
from app.processes.processor_cores import Cores, count_cores, count_slots


@pytest.fixture
def cores(tmp_path):
    return Cores(str(tmp_path), 2)


def test_a_core_is_held_by_one_and_freed_with_it(cores):
    first, second = cores.take(), cores.take()
    assert first is not None
    assert second is not None
    assert cores.take() is None
    first.close()
    assert cores.take() is not None


def test_a_process_that_is_killed_frees_its_core(cores):
    code = (
        "import sys, app.processes.processor_cores as module; cores = module.Cores(sys.argv[1], 2); "
        "held = cores.take(), cores.take(); print(1, flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, cores.folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout.readline()
    assert cores.take() is None
    process.kill()
    process.communicate()
    assert cores.take() is not None


def test_a_job_that_waits_is_seen_until_it_has_a_core(cores):
    held, over, done = [cores.take(), cores.take()], threading.Event(), threading.Event()

    def job():
        with cores.held(over) as is_held:
            assert is_held
            done.set()
            over.wait(30)

    assert not cores.is_wanted
    thread = threading.Thread(target=job)
    thread.start()
    while not cores.is_wanted:
        pass
    held[0].close()
    assert done.wait(10)
    assert not cores.is_wanted
    over.set()
    thread.join()


def test_a_job_that_ends_waits_no_longer(cores):
    held, over = [cores.take(), cores.take()], threading.Event()
    assert all(held)
    over.set()
    with cores.held(over) as is_held:
        assert not is_held
    assert not cores.is_wanted


def test_a_folder_of_somebody_else_is_no_place_for_locks(tmp_path, monkeypatch):
    monkeypatch.setattr(processor_cores.tempfile, "gettempdir", lambda: str(tmp_path))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"valiant-cores-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    assert Cores.of_machine().size == 1


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        ({"cpu.max": "max 100000\n"}, None),
        ({"a/cpu.max": "50000 100000\n"}, 0),
        ({"cpu.max": "400000 100000\n", "a/b/cpu.max": "250000 100000\n"}, 2),
        ({"other/cpu.max": "100000 100000\n"}, None),
        ({"cpu/a/cpu.cfs_quota_us": "300000", "cpu/a/cpu.cfs_period_us": "100000"}, 3),
        ({"cpu/a/cpu.cfs_quota_us": "-1", "cpu/a/cpu.cfs_period_us": "100000"}, None),
    ],
)
def test_quotas_of_control_groups_count(tmp_path, files, expected):
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    unlimited, *quotas = sorted(processor_cores._quotas(tmp_path, ["/a/b"]), reverse=True)
    assert unlimited > 10_000
    assert min(quotas, default=None) == expected


def test_an_affinity_of_fewer_cores_counts():
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); "
        "from app.processes.processor_cores import count_cores; print(count_cores())"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout == "1\n"


def test_a_worker_has_a_slot_for_each_core_that_memory_has_room_for(monkeypatch):
    monkeypatch.setattr(processor_cores, "count_cores", lambda: 4)
    monkeypatch.setattr(processor_cores, "count_memory", lambda: 13 * GiB)
    assert count_slots(Settings(job_memory_bytes=2 * GiB)) == 4
    assert count_slots(Settings(job_memory_bytes=5 * GiB)) == 2
    assert count_slots(Settings(job_memory_bytes=50 * GiB)) == 1
    assert count_slots(Settings(worker_concurrency=7)) == 7
    assert count_cores() >= 1
