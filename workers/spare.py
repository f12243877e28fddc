"""Trainers started ahead of their jobs, so that a small fit does not wait for an interpreter."""

import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from typing import IO, cast

import structlog

log = structlog.get_logger(__name__)

_INHERITED = ("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "NUMBA_CACHE_DIR", "PATH", "PYTHONPATH", "TMPDIR", "TZ")
"""All a trainer gets of our environment: no address, no password."""
_OWN = {
    **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"),
    "ARROW_DEFAULT_MEMORY_POOL": "system",  # the others reserve more than they use, and the limit counts it
    "PYTHONHASHSEED": "0",  # same receipt, same bytes
    "PYTHONUNBUFFERED": "1",
}


class Child:
    """A trainer's process. Frames have pipes of their own, slots lent to it a socket; what it prints comes together."""

    def __init__(self) -> None:
        theirs, mine = os.pipe()
        self.inlet: IO[bytes] = os.fdopen(mine, "wb")
        mine, theirs_too = os.pipe()
        self.outlet: IO[bytes] = os.fdopen(mine, "rb", buffering=0)
        self.grants, slots = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._reaping = threading.Lock()
        given = theirs, theirs_too, slots.fileno()
        try:
            self.process = subprocess.Popen(  # noqa: S603 - a command of our own making
                [sys.executable, "-P", "-m", "workers.trainer", *map(str, (os.getpid(), *given))],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={name: os.environ[name] for name in _INHERITED if name in os.environ} | _OWN,
                pass_fds=given,
                start_new_session=True,  # Ctrl-C in a terminal is for the worker, which stops its trainers in order
            )
        finally:
            os.close(theirs)
            os.close(theirs_too)
            slots.close()
        self.prints = cast("IO[bytes]", self.process.stdout)

    @property
    def alive(self) -> bool:
        return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def kill(self) -> None:
        """With everything it may have started. Safe at any time, from any thread."""
        with self._reaping:
            if self.process.returncode is None:  # not reaped, so the number is still its own
                with suppress(ProcessLookupError):
                    os.killpg(self.process.pid, signal.SIGKILL)

    def close(self) -> int:
        """End it if it has not ended. How it ended: its exit status, or minus the signal."""
        self.kill()
        with self._reaping:
            status = self.process.wait()
        for pipe in (self.inlet, self.outlet, self.prints, self.grants):
            with suppress(OSError):  # what was buffered for the dead
                pipe.close()
        return status


class Spares:
    """Keeps one trainer warm: a new one starts as soon as it is taken, a dead one is replaced.

    All are started by one thread that lives as long as this: the kernel ends a trainer when the
    *thread* that started it ends.
    """

    def __init__(self, *, check_seconds: float = 1.0) -> None:
        self._check_seconds = check_seconds
        self._changed = threading.Condition()
        self._spare: Child | None = None
        self._closed = False
        self._keeper = threading.Thread(target=self._keep, name="spares", daemon=True)
        self._keeper.start()

    def take(self) -> Child:
        """The spare, or the next one. Raises RuntimeError after `close`."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or (self._spare is not None and self._spare.alive))
            if self._closed or self._spare is None:
                raise RuntimeError("The worker is closing.")
            taken, self._spare = self._spare, None
            self._changed.notify_all()
            return taken

    def close(self) -> None:
        """End the spare. Those that were taken end too, if they still run: join them before."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._keeper.join()

    def _keep(self) -> None:
        with self._changed:
            while not self._closed:
                self._replace()
                self._changed.notify_all()
                self._changed.wait(self._check_seconds)
            if self._spare is not None:
                self._spare.close()

    def _replace(self) -> None:
        if self._spare is not None and not self._spare.alive:
            log.warning("spare_died", status=self._spare.close())
            self._spare = None
        if self._spare is None:
            try:
                self._spare = Child()
            except OSError:  # no process to be had now; the next check tries again
                log.exception("spare_failed")
