"""Children of `valiant up`: frozen, in a loop, starved, dead, and others that only look like it."""

import signal
import subprocess
import sys
import time

import pytest

from app.commands.supervising import LOOK_SECONDS, Watched
from app.embedded.child_process import Child
from app.embedded.data_folder import Folder
from app.processes import liveness
from app.processes.disk_space import Reserve
from app.processes.liveness import NONE, Activity, Patience

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


SLEEPING = Activity(1.0, frozenset("S"))
STOPPED = Activity(1.0, frozenset("T"))


@pytest.fixture
def activity(monkeypatch):
    """`activity(read)`: of every process from now on, `read(n)` at the n-th look."""

    def set_activity(read):
        looks = iter(range(1_000_000))
        monkeypatch.setattr(liveness, "read_activity", lambda _: read(next(looks) // 2))  # twice at each look

    return set_activity


def end_of(patience, seconds, **how):
    """Seconds after which it ended, looking every second, and how; None if it did not."""
    ends = ((now, patience.look(now, **how)) for now in range(1, seconds + 1))
    return next(((now, type(end).__name__) for now, end in ends if end is not None), None)


@pytest.mark.parametrize(
    ("read", "end"),
    [
        (lambda _: SLEEPING, (34, "Frozen")),
        (lambda _: STOPPED, (34, "Frozen")),
        (lambda look: SLEEPING._replace(cpu_seconds=look // 29 * 0.01), (600, "Unresponsive")),
        (lambda _: SLEEPING._replace(states=frozenset("SR")), (600, "Unresponsive")),
        (lambda _: SLEEPING._replace(states=frozenset("D")), (600, "Unresponsive")),
        (lambda look: Activity(look * 0.9, frozenset("R")), (61, "Looping")),
        (lambda look: Activity(look * 0.02, frozenset("R")), (600, "Unresponsive")),
    ],
    ids=["sleeping", "stopped", "computing seldom", "waiting for a processor", "waiting for a disk", "loop", "starved"],
)
def test_frozen_is_who_neither_computes_nor_waits_for_a_processor_or_a_disk(activity, read, end):
    activity(read)
    assert end_of(Patience(1, 30, cpu_seconds=50, now=0), 700) == end


def test_one_that_waits_for_others_is_frozen_only_if_it_is_stopped(activity):
    activity(lambda _: SLEEPING)
    assert end_of(Patience(1, 30, now=0), 500, is_expected=False) is None
    activity(lambda _: STOPPED)
    assert end_of(Patience(1, 30, now=0), 500, is_expected=False) == (34, "Frozen")


def test_a_sign_of_life_begins_everything_anew(activity):
    activity(lambda _: SLEEPING)
    patience = Patience(1, 30, now=0)
    for now in range(1, 200):
        assert patience.look(now) is None
        if now % 29 == 0:
            patience.renew()


def test_a_machine_that_slept_for_an_hour_has_not_frozen_its_children(activity):
    activity(lambda _: SLEEPING)
    patience = Patience(1, 30, now=0)
    for now in range(1, 20):
        patience.look(now)
    assert patience.look(3600) is None


def test_activity_is_that_of_a_real_process():
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        while "S" not in (before := liveness.read_activity(process.pid)).states:
            time.sleep(0.01)
        assert before.cpu_seconds > 0
        process.send_signal(signal.SIGSTOP)
        while not liveness.read_activity(process.pid).is_stopped:
            time.sleep(0.01)
        assert liveness.read_family(process.pid).states == {"T"}
    finally:
        process.kill()
        process.wait()
    assert liveness.read_activity(process.pid) == NONE


def watch(child, folder, count):
    watched, start = Watched(child, Reserve(folder, 0), 5), time.monotonic()
    for number in range(count):
        watched.look(start + number * LOOK_SECONDS)


def test_a_silent_child_is_replaced_once(child, data_folder, capsys):
    child.spawn()
    first = child.process
    child.beat.touch()
    while "S" not in liveness.read_activity(child.pid).states:
        time.sleep(0.01)
    watch(child, data_folder, 100)
    assert first.returncode == -9
    assert child.process is not first
    assert child.alive
    assert capsys.readouterr().err.count("sleeper is frozen") == 1


def test_a_child_that_is_starting_is_replaced_only_if_it_is_stopped(child, data_folder, capsys):
    child.spawn()
    watch(child, data_folder, 100)
    assert capsys.readouterr().err == ""
    child.process.send_signal(signal.SIGSTOP)
    while not liveness.read_activity(child.pid).is_stopped:
        time.sleep(0.01)
    watch(child, data_folder, 30)
    assert capsys.readouterr().err.count("sleeper is frozen") == 1


@pytest.mark.parametrize(("number", "ending"), [(signal.SIGKILL, "by signal SIGKILL"), (None, "with exit status 7")])
def test_the_end_of_a_child_is_reported_with_its_status(child, data_folder, capsys, number, ending):
    if number is None:
        child.command = ["/bin/sh", "-c", "exit 7"]
    child.spawn()
    if number is not None:
        child.process.send_signal(number)
    child.process.wait()
    watch(child, data_folder, 1)
    assert f"sleeper ended by itself, {ending}; starting it again" in capsys.readouterr().err


BLOCKING = """
import signal, sys

def block(*_):
    while True:
        pass

if sys.orig_argv[-1] == "api":
    signal.signal(signal.SIGUSR1, block)  # runs in the thread of the event loop
"""


@pytest.mark.slow
def test_an_api_whose_event_loop_computes_for_ever_is_replaced(stack, tmp_path, capsys):
    from app.commands import processes
    from app.processes import ports

    (tmp_path / "sitecustomize.py").write_text(BLOCKING)
    with ports.listen("127.0.0.1", 0) as free:
        settings = stack.settings.model_copy(update={"port": free.getsockname()[1]})
    child = processes.api(settings, stack.folder, to_terminal=False)
    child.environment = {**child.environment, "PYTHONPATH": str(tmp_path)}
    child.loop_seconds = 2.0
    child.start()
    try:
        watched, first = Watched(child, Reserve(stack.folder.root, 0), 600), child.process
        while child.seen_at is None:
            time.sleep(0.1)
        first.send_signal(signal.SIGUSR1)
        while child.process is first:
            watched.look(time.monotonic())
            time.sleep(LOOK_SECONDS)
        assert first.returncode == -signal.SIGKILL
        assert "api is in a loop: it has given no sign of life in 2 s of processor time" in capsys.readouterr().err
        child.wait()
    finally:
        child.stop()


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
