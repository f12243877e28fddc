"""Frozen children, and others that only look like it."""

import subprocess
import sys

import pytest

from app.disk_space import Reserve
from app.embedded.child_process import Child
from app.embedded.data_folder import Folder
from app.supervising import LOOK_SECONDS, Silence, Watched

BEATING = """
import sys, time
from pathlib import Path
from workers.heartbeat import beat
beat(Path(sys.argv[1]))
time.sleep(600)
"""


@pytest.fixture
def child(data_folder):
    """A child that has a file to touch, and does nothing."""
    beat = data_folder / "beat"
    with Folder(data_folder) as folder:
        made = Child(
            name="sleeper", command=["/bin/sleep", "600"], folder=folder, cwd=data_folder, ready=lambda: True, beat=beat
        )
        yield made
        made.kill()


def looks(silence, seconds, start=0.0):
    """Seconds of silence after looking for so long."""
    count = int(seconds / LOOK_SECONDS)
    return [silence.look(start + n * LOOK_SECONDS) for n in range(count + 1)][-1]


def test_silence_begins_with_the_first_beat_and_ends_with_the_next(child):
    silence = Silence(child)
    assert looks(silence, 100) == 0  # it may be starting
    child.beat.touch()
    assert 9 <= looks(silence, 10, start=100) <= 10
    child.beat.touch()
    assert silence.look(110.25) == 0


def test_a_machine_that_slept_for_an_hour_has_not_frozen_its_children(child):
    child.beat.touch()
    silence = Silence(child)
    looks(silence, 5)
    assert silence.look(3605) < 6


def test_a_silent_child_is_replaced_once(child, data_folder, capsys):
    child.spawn()
    first = child.process
    child.beat.touch()
    watched = Watched(child, Reserve(data_folder, 0), patience=5)
    for n in range(100):
        watched.look(n * LOOK_SECONDS)
    assert first.returncode == -9
    assert child.process is not first
    assert child.alive
    assert capsys.readouterr().err.count("sleeper is frozen") == 1


def test_a_worker_beats_until_it_is_stopped(tmp_path):
    file = tmp_path / "beat"
    process = subprocess.Popen([sys.executable, "-c", BEATING, str(file)])
    try:
        seen = set()
        while len(seen) < 3:
            assert process.poll() is None
            if file.exists():
                seen.add(file.stat().st_mtime_ns)
    finally:
        process.kill()
        process.wait()
