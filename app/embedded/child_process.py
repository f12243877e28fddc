"""A child process: started, awaited, stopped, and found again when it was left behind."""

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import psutil
import structlog

from app.base.errors import StartFailed
from app.embedded.data_folder import Folder
from app.processes.liveness import HARD_LIMIT_SECONDS, Patience, describe_end

LAUNCH = Path(__file__).with_name("launch_as_user.py")
PROBE_SECONDS = 2.0
"""Seconds between two requests to a server that gives no sign of life by itself."""
SERVERS = {"postgres", "redis-server", "valkey-server"}
log = structlog.get_logger(__name__)
Stops = Sequence[tuple[signal.Signals, float]]


@dataclass
class Child:
    """One program that must run. `stops` are signals to end it, each with the seconds it gets."""

    name: str
    command: Sequence[str]
    folder: Folder
    cwd: Path
    ready: Callable[[], bool]
    stops: Stops = ((signal.SIGTERM, 35), (signal.SIGKILL, 10))
    environment: Mapping[str, str] | None = None
    drop_root: bool = False
    to_terminal: bool = False
    before: Callable[[], None] = lambda: None
    """Done before each start."""
    beat: Path | None = None
    """A file that the program touches again and again for as long as it is well."""
    responds: Callable[[], bool] | None = None
    """For a program without such a file: True if it responds at all, if only that it is busy."""
    loop_seconds: float = math.inf
    """Processor time without a sign of life after which it is in a loop."""
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _stopping: bool = field(default=False, init=False)
    _responded_at: int | None = field(default=None, init=False)

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def pid(self) -> int:
        if self.process is None:
            raise ProcessLookupError(self.name)
        return self.process.pid

    @property
    def seen_at(self) -> int | None:
        """When it last gave a sign of life, in nanoseconds; None before the first one."""
        try:
            return self._responded_at if self.beat is None else self.beat.stat().st_mtime_ns
        except FileNotFoundError:
            return None

    def probe(self) -> None:
        """From now on, request signs of life from a program that gives none by itself."""
        if self.responds is not None:
            threading.Thread(target=self._probe, args=(self.responds,), name=f"probe-{self.name}", daemon=True).start()

    def _probe(self, responds: Callable[[], bool]) -> None:
        while True:
            process = self.process
            try:
                if responds() and self.process is process:
                    self._responded_at = time.monotonic_ns()
            except Exception:  # without probes it would be taken for frozen
                log.exception("probe_failed", program=self.name)
            time.sleep(PROBE_SECONDS)

    def patience(self, seconds: float) -> Patience:
        """Patience with the process that runs now."""
        return Patience(self.pid, seconds, cpu_seconds=self.loop_seconds, with_family=self.responds is not None)

    def describe_end(self) -> str:
        """The way in which it ended, as the end of a sentence."""
        status = None if self.process is None else self.process.poll()
        return "before it began" if status is None else describe_end(status)

    @property
    def logfile(self) -> Path:
        return self.folder.log / f"{self.name}.log"

    def spawn(self) -> None:
        """Start without waiting. It dies when the calling *thread* does: call from the main one."""
        self.before()
        if self.beat is not None:
            self.beat.unlink(missing_ok=True)
        self._stopping, self._responded_at = False, None
        with self._output() as output:
            self.process = subprocess.Popen(  # noqa: S603 - our own programs, no shell
                [sys.executable, "-I", "-S", str(LAUNCH), json.dumps(self._plan()), *self.command],
                cwd=self.cwd,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C in a terminal is for us; we stop them in order
            )

    def wait(self, seconds: float = HARD_LIMIT_SECONDS) -> None:
        """Wait until it is ready; StartFailed with its last words if it ends or takes too long."""
        end = time.monotonic() + seconds
        while not self.ready():
            self.check()
            if time.monotonic() > end:
                raise StartFailed(f"{self.name} is not ready. {self._last_words()}")
            time.sleep(0.02)

    def check(self) -> None:
        """StartFailed with its last words if it has ended."""
        if not self.alive:
            raise StartFailed(f"{self.name} has ended {self.describe_end()}. {self._last_words()}")

    def start(self) -> None:
        self.spawn()
        self.wait()

    def begin_stop(self) -> None:
        """Send the first signal, once: a second one means haste to many programs."""
        if self.process is not None and not self._stopping:
            self._stopping = True
            self.process.send_signal(self.stops[0][0])

    def stop(self) -> None:
        """End it and wait, more and more urgently."""
        self.begin_stop()
        if self.process is None:
            return
        for number, seconds in self.stops:
            if number != self.stops[0][0]:
                self.process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(seconds)
                return

    def kill(self) -> None:
        """End the process without warning, like a crash."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def _plan(self) -> dict[str, int]:
        plan = {"parent": os.getpid(), "signal": int(self.stops[0][0])}
        if self.drop_root and (account := self.folder.account):
            plan |= account._asdict()
            if (capability := self.folder.capability(Path(self.command[0]))) is not None:
                plan["capability"] = capability
        return plan

    @contextlib.contextmanager
    def _output(self) -> Iterator[IO[bytes] | None]:
        if self.to_terminal:
            yield None
        else:
            with self.logfile.open("ab") as file:
                yield file

    def _last_words(self) -> str:
        if self.to_terminal:
            return "Its messages are above."
        lines = self.logfile.read_text(errors="replace").splitlines()
        return f"The end of {self.logfile}:\n" + "\n".join(lines[-5:])


def stop_all(children: Iterable[Child]) -> None:
    """End them side by side, and wait."""
    stopping = list(children)
    for child in stopping:
        child.begin_stop()
    for child in stopping:
        child.stop()


def end_leftovers(folder: Path) -> None:
    """End what a crashed start left running in `folder`, the data folder or a part of it.

    Ours is what runs one of our programs *and* has its working folder in there.
    That also finds the backends of a Postgres whose postmaster is gone.
    """
    leftovers = {process.pid: process for process in psutil.process_iter() if _is_ours(process, folder)}
    for process in leftovers.values():
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.ppid() not in leftovers:  # a backend ends with its postmaster
                process.send_signal(signal.SIGINT if process.name() == "postgres" else signal.SIGTERM)
    _, stubborn = psutil.wait_procs(leftovers.values(), timeout=15)
    for process in stubborn:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(stubborn, timeout=15)


def _is_ours(process: psutil.Process, folder: Path) -> bool:
    try:
        inside = Path(process.cwd()).is_relative_to(folder)
        return inside and (
            process.name() in SERVERS
            or any(word.startswith(("app.", "workers.")) for word in process.cmdline())
            or str(LAUNCH) in process.cmdline()
        )
    except (psutil.Error, OSError):
        return False
