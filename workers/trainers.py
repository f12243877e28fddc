"""Trainers: processes of one job each, forked from a template that has imported what a fit needs."""

import math
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import IO, TypeVar

import structlog

from app.ml.numerics.kernel_folders import PINNED
from app.processes.liveness import PATIENCE_SECONDS, Patience, describe_end, wait_until_readable
from workers.template_protocol import ALIVE, END, KILL, READY, REQUEST, RESPONSE, RUNNING, START

log = structlog.get_logger(__name__)

_PROCESSOR = ("OPENBLAS_CORETYPE", "NPY_DISABLE_CPU_FEATURES", *PINNED)
"""The processor that libraries compute for, and where their kernels are: sums round as where a model is served."""
_INHERITED = ("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH", "TMPDIR", "TZ")
"""All else that a trainer gets of our environment: no address, no password."""
_OWN = {
    **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"),
    "ARROW_DEFAULT_MEMORY_POOL": "system",  # the others reserve more than they use, and the limit counts it
    "JE_ARROW_MALLOC_CONF": "background_thread:false",  # Arrow's allocator starts a thread when it is loaded
    "PYTHONHASHSEED": "0",  # same receipt, same bytes
    "PYTHONUNBUFFERED": "1",
}
LONGEST_PAUSE = 0.05
"""Seconds between two looks at a trainer that is being ended."""
T = TypeVar("T")


class Template:
    """The process that trainers are forked from. It dies with the thread that started it, its trainers die with it."""

    def __init__(self, patience_seconds: float) -> None:
        """patience_seconds: time after which it, or a trainer, is frozen that should respond and computes nothing."""
        self.patience_seconds = patience_seconds
        self._control, theirs = socket.socketpair()
        self._lock = threading.Lock()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - a command of our own making
                [sys.executable, "-P", "-m", "workers.template", str(os.getpid()), str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                env={name: os.environ[name] for name in _INHERITED + _PROCESSOR if name in os.environ} | _OWN,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C in a terminal is for the worker, which stops its trainers in order
            )

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def request(self, operation: bytes, pid: int = 0, descriptors: Sequence[int] = ()) -> int:
        """Response of the template. Raises OSError when it is gone, or frozen: then it is ended, with its trainers."""
        with self._lock:
            try:
                socket.send_fds(self._control, [REQUEST.pack(operation, pid)], descriptors)
                wait_until_readable(self._control, Patience(self._process.pid, self.patience_seconds))
                response = self._control.recv(RESPONSE.size, socket.MSG_WAITALL)
                if not response:
                    raise ConnectionResetError("The template is gone.")
            except OSError:
                self._process.kill()
                raise
        return int(RESPONSE.unpack(response)[0])

    def wait(self) -> None:
        """Return once it can start trainers. Raises OSError when it is gone, or frozen."""
        self.request(READY)

    def start(self, descriptors: Sequence[int]) -> int:
        """The process id of a new trainer with these pipes. Raises OSError when no process can be had."""
        pid = self.request(START, 0, descriptors)
        if pid < 0:
            raise OSError(-pid, os.strerror(-pid))
        return pid

    def close(self) -> int:
        self._process.kill()
        self._control.close()
        return self._process.wait()


class Trainer:
    """A trainer's process. Frames have pipes of their own; what it prints comes together."""

    def __init__(self, template: Template) -> None:
        """Raises OSError when no process can be had, or the template is gone."""
        self._template = template
        self._status: int | None = None
        self._ending = threading.Lock()
        their_inlet, inlet = os.pipe()
        outlet, their_outlet = os.pipe()
        prints, their_prints = os.pipe()
        self.inlet: IO[bytes] = os.fdopen(inlet, "wb")
        self.outlet: IO[bytes] = os.fdopen(outlet, "rb", buffering=0)
        self.prints: IO[bytes] = os.fdopen(prints, "rb", buffering=0)
        descriptors = their_inlet, their_outlet, their_prints
        try:
            self.pid = template.start(descriptors)
        except OSError:
            self._close_pipes()
            raise
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def patience(self) -> Patience:
        """Patience without a limit on time: that is the job's. It may wait for its forks."""
        return Patience(self.pid, self._template.patience_seconds, hard_seconds=math.inf, with_family=True)

    @property
    def alive(self) -> bool:
        return self._status is None and self._request(ALIVE) == RUNNING

    def kill(self) -> None:
        """With everything it may have started. Safe at any time, from any thread."""
        with self._ending:
            if self._status is None:  # the template has not reaped it, so the number is still its own
                self._request(KILL)

    def close(self) -> int:
        """End it if it has not ended. How it ended: its exit status, or minus the signal."""
        with self._ending:
            pause = 0.001
            while self._status is None:
                status = self._request(END)
                if status != RUNNING:
                    self._status = status
                    break
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
        self._close_pipes()
        return self._status

    def _request(self, operation: bytes) -> int:
        try:
            return self._template.request(operation, self.pid)
        except OSError:  # it died with the template
            return -signal.SIGKILL

    def _close_pipes(self) -> None:
        for pipe in (self.inlet, self.outlet, self.prints):
            with suppress(OSError):  # what was buffered for the dead
                pipe.close()


class Trainers:
    """Keeps a template, and starts trainers from it.

    A template is started by one thread that lives as long as this: the kernel ends it when the *thread* that started
    it ends.
    """

    def __init__(self, *, check_seconds: float = 1.0, patience_seconds: float = PATIENCE_SECONDS) -> None:
        """patience_seconds: as of `Template`."""
        self._check_seconds, self._patience_seconds = check_seconds, patience_seconds
        self._changed = threading.Condition()
        self._template: Template | None = None
        self._closed = False
        self._keeper = threading.Thread(target=self._keep, name="trainers", daemon=True)
        self._keeper.start()

    def start(self) -> Trainer:
        """A new trainer, when a process can be had. Raises RuntimeError after `close`."""
        return self._from_template(Trainer)

    def wait(self) -> None:
        """Return once trainers can be started. Raises RuntimeError after `close`."""
        self._from_template(Template.wait)

    def _from_template(self, take: Callable[[Template], T]) -> T:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or (self._template is not None and self._template.alive))
                if self._closed or self._template is None:
                    raise RuntimeError("The worker is closing.")
                template = self._template
            try:
                return take(template)
            except OSError:
                log.exception("trainer_not_started")
            with self._changed:
                self._changed.notify_all()  # the keeper replaces a template that is gone
                self._changed.wait(self._check_seconds)

    def close(self) -> None:
        """End the template. Trainers that still run end too: join them before."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._keeper.join()

    def _keep(self) -> None:
        with self._changed:
            while not self._closed:
                try:
                    self._replace()
                except Exception:  # the next check may succeed, and without a template no job starts
                    log.exception("template_not_replaced")
                self._changed.wait(self._check_seconds)
            if self._template is not None:
                self._template.close()

    def _replace(self) -> None:
        if self._template is not None and not self._template.alive:
            log.warning("template_died", how=describe_end(self._template.close()))
            self._template = None
        if self._template is None:
            try:
                self._template = Template(self._patience_seconds)
            except OSError:  # no process to be had now; the next check tries again
                log.exception("template_failed")
            else:
                self._changed.notify_all()
