"""Liveness of a process that is expected to respond: whether it is frozen, or only starved.

A starved process computes now and then, or waits for a processor or a disk, and will respond. A frozen one does
neither, and never will. Every observer of a process has a `Patience` with it.
"""

import math
import os
import select
import signal
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

LOOK_SECONDS = 1.0
"""Seconds between two looks at a process that has not responded."""
QUIET_SECONDS = 5.0
"""Time without a sign of life before anybody looks at what a process does: the healthy cost nothing."""
ON_TIME_SECONDS = 2.0
"""Time that counts between two looks: if more has passed, the observer was late, or the machine slept."""
PATIENCE_SECONDS = 60.0
"""Time in which a process that is not frozen computes something."""
HARD_LIMIT_SECONDS = 600.0
"""Longest time without a response: a loop, or a disk that is gone."""

PROCESSES = Path("/proc")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
STATES = {psutil.STATUS_RUNNING: "R", psutil.STATUS_DISK_SLEEP: "D", psutil.STATUS_STOPPED: "T"}
"""States as Linux abbreviates them, by their names in psutil."""


class Unresponsive(TimeoutError):
    """A process that gave no sign of life for longer than it may; the text continues "It is"."""


class Frozen(Unresponsive):
    """A process that neither computed nor waited for a processor or a disk."""


class Looping(Unresponsive):
    """A process that computed for longer than it may."""


class Activity(NamedTuple):
    """Processor time of some threads, and their states as Linux abbreviates them."""

    cpu_seconds: float
    states: frozenset[str]

    @property
    def is_starved(self) -> bool:
        """True if a thread computes, or waits for a processor or a disk."""
        return not self.states.isdisjoint("RD")

    @property
    def is_stopped(self) -> bool:
        """True if a signal or a debugger stopped all of them."""
        return bool(self.states) and self.states <= {"T", "t"}


NONE = Activity(0.0, frozenset())


def read_activity(pid: int) -> Activity:
    """Activity of the threads of a process; `NONE` if it is gone."""
    return _total(_threads(pid))


def read_family(pid: int) -> Activity:
    """Activity of a process with all its descendants."""
    with suppress(psutil.Error):
        pids = [child.pid for child in psutil.Process(pid).children(recursive=True)]
        return _total(map(read_activity, [pid, *pids]))
    return NONE


def _total(activities: Iterable[Activity]) -> Activity:
    parts = list(activities)
    states = frozenset[str]().union(*(part.states for part in parts))
    return Activity(sum(part.cpu_seconds for part in parts), states)


def _threads(pid: int) -> Iterator[Activity]:
    if not PROCESSES.is_dir():
        with suppress(psutil.Error):
            process = psutil.Process(pid)
            times = process.cpu_times()
            yield Activity(times.user + times.system, frozenset(STATES.get(process.status(), "S")))
        return
    for file in (PROCESSES / str(pid) / "task").glob("*/stat"):
        with suppress(OSError):  # the thread has ended meanwhile
            state, *numbers = file.read_text("ascii", "replace").rpartition(")")[2].split()
            yield Activity((int(numbers[10]) + int(numbers[11])) / TICKS_PER_SECOND, frozenset(state))


class Patience:
    """Patience with one process, until it gives a sign of life."""

    def __init__(
        self,
        pid: int,
        seconds: float = PATIENCE_SECONDS,
        *,
        cpu_seconds: float = math.inf,
        hard_seconds: float = HARD_LIMIT_SECONDS,
        with_family: bool = False,
        now: float | None = None,
    ) -> None:
        """seconds: time in which it must compute something, or be starved. cpu_seconds: processor time that it may
        spend in silence. hard_seconds: longest silence, whatever it does. with_family: what its descendants compute
        counts, for it waits for them.
        """
        self._pid = pid
        self.look_seconds = min(LOOK_SECONDS, seconds, cpu_seconds)
        self._seconds, self._cpu_seconds, self._hard_seconds = seconds, cpu_seconds, hard_seconds
        self._read = read_family if with_family else read_activity
        self._looked_at = time.monotonic() if now is None else now
        self.renew()

    def renew(self) -> None:
        """Begin anew: it has given a sign of life."""
        self._silent = self._idle = self._computed = 0.0
        self._before: float | None = None

    def look(self, now: float | None = None, *, is_expected: bool = True) -> Unresponsive | None:
        """Why it will not respond; None if it still may.

        is_expected: False if it may wait for somebody else, so that only a stopped process is frozen.
        """
        now = time.monotonic() if now is None else now
        passed, self._looked_at = min(now - self._looked_at, ON_TIME_SECONDS), now
        self._silent += passed
        if self._silent < min(QUIET_SECONDS, self._seconds / 2, self._cpu_seconds / 2):
            return None
        activity, is_stopped = self._read(self._pid), read_activity(self._pid).is_stopped
        computed = 0.0 if self._before is None else activity.cpu_seconds - self._before
        self._before = activity.cpu_seconds
        is_idle = is_expected and not computed and not activity.is_starved
        self._computed += max(computed, 0.0)  # the time of a descendant that has ended is gone
        self._idle = self._idle + passed if is_stopped or is_idle else 0.0
        if self._idle >= self._seconds:
            return Frozen(f"frozen: it has given no sign of life and computed nothing for {self._seconds:g} s")
        if self._computed >= self._cpu_seconds:
            return Looping(f"in a loop: it has given no sign of life in {self._cpu_seconds:g} s of processor time")
        if self._silent >= self._hard_seconds:
            return Unresponsive(f"silent: it has given no sign of life for {self._hard_seconds:g} s")
        return None


def wait_until_readable(channel: socket.socket, patience: Patience) -> None:
    """Return when the process at the other end has written, or is gone. Raises Unresponsive if it will do neither."""
    _wait(channel, select.POLLIN, patience)


def wait_until_writable(channel: socket.socket, patience: Patience) -> None:
    """Return when the process at the other end has read, or is gone. Raises Unresponsive if it will do neither."""
    _wait(channel, select.POLLOUT, patience)


def _wait(channel: socket.socket, event: int, patience: Patience) -> None:
    waiting = select.poll()  # `select` takes no descriptor above 1023
    waiting.register(channel, event)
    while not waiting.poll(1000 * patience.look_seconds):
        if (end := patience.look()) is not None:
            raise end


def describe_end(status: int) -> str:
    """The way in which a process ended, from its exit status, or minus the signal: the end of a sentence."""
    if status >= 0:
        return f"with exit status {status}"
    with suppress(ValueError):
        return f"by signal {signal.Signals(-status).name}"
    return f"by signal {-status}"
