"""The template: a process that has imported what a fit needs, and forks a trainer for each job.

It has one thread, so that a fork of it is whole. It has no credentials, database or broker, and runs no job. While
nothing runs, it loads the kernels that are on disk for its trainers; it compiles none, and waits for no other process.
"""

import gc
import importlib
import os
import resource
import select
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from app.ml.numerics.compiled_kernels import all_loaded, load_from_disk
from app.ml.operations import kinds
from app.ml.training.reporting.receipt import libraries
from app.processes.parent_process import die_with
from app.processes.process_memory import uncollected, without_optional
from workers import trainer
from workers.template_protocol import ALIVE, END, READY, REQUEST, RESPONSE, RUNNING, START

LAZY = "scipy.linalg", "scipy.optimize", "scipy.sparse", "scipy.spatial.distance", "scipy.special"
"""Modules that scipy imports with their first use."""
PIPES = 3
"""Pipes of a trainer: its inlet, its outlet and its output."""
IDLE_SECONDS = 0.5
"""Without a trainer and without a request for so long, there is time for kernels."""
NICENESS = 5
"""Jobs wait for requests, not requests for jobs."""
ABSENT_SECONDS = 2.0
"""Time between two looks for kernels that are compiled elsewhere meanwhile."""


class Template:
    def __init__(self, control: socket.socket) -> None:
        self._control = control
        without_optional()
        with uncollected():
            kinds()
        self._imports = written()
        """Bytes that an interpreter with the imports of every job has written, before it does anything."""
        with uncollected():
            for module in LAZY:
                importlib.import_module(module)
        libraries()  # reads their metadata once
        self._trainers: set[int] = set()
        self._loading: Iterator[None] = load_from_disk()
        self._pause: float | None = IDLE_SECONDS
        """Time until there may be a kernel to load; None: all are loaded."""

    def serve(self) -> None:
        """Until the worker is gone."""
        while True:
            if not select.select([self._control], [], [], self._idle_seconds())[0]:
                self._prepare()
                continue
            request, descriptors, _, _ = socket.recv_fds(self._control, REQUEST.size, PIPES)
            if not request:
                return
            operation, pid = REQUEST.unpack(request)
            self._control.sendall(RESPONSE.pack(self._respond(operation, pid, descriptors)))

    def _respond(self, operation: bytes, pid: int, descriptors: Sequence[int]) -> int:
        if operation == READY:
            return 0
        if operation == START:
            return self._start(descriptors)
        if operation == ALIVE:
            return RUNNING if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None else 0
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        return self._reap(pid) if operation == END else 0

    def _start(self, descriptors: Sequence[int]) -> int:
        """A trainer's process id, or minus the error number."""
        beyond = max(0, written() - self._imports)
        gc.freeze()  # a collection in the trainer leaves our pages alone
        try:
            pid = _fork(partial(_train, os.getpid(), self._control, descriptors, beyond))
        except OSError as error:
            return -(error.errno or 1)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        os.setpgid(pid, pid)  # here too: it may be killed before it has done so itself
        self._trainers.add(pid)
        return pid

    def _reap(self, pid: int) -> int:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if not ended:
            return RUNNING
        self._trainers.discard(pid)
        return os.waitstatus_to_exitcode(status)

    # kernels, while there is time

    def _idle_seconds(self) -> float | None:
        """Until the next look for kernels; None while there is none."""
        return None if self._trainers else self._pause

    def _prepare(self) -> None:
        """Load one kernel, if another is on disk by now."""
        if next(self._loading, _DONE) is not _DONE:
            self._pause = 0.0
        else:
            self._loading, self._pause = load_from_disk(), None if all_loaded() else ABSENT_SECONDS


_DONE = object()


def _fork(work: Callable[[], int]) -> int:
    """The process id of a fork that does the work, and exits with the status it returns."""
    if pid := os.fork():
        return pid
    status = 1
    try:
        status = work()
    except BaseException:  # noqa: BLE001 - it ends here, whatever it is
        traceback.print_exc()
    finally:
        os._exit(status)


def _train(template: int, control: socket.socket, descriptors: Sequence[int], beyond: int) -> int:
    """Be a trainer. beyond: bytes that do not count towards its memory."""
    control.close()
    os.setpgid(0, 0)
    os.nice(NICENESS)
    inlet, outlet, prints = descriptors
    os.dup2(prints, sys.stdout.fileno())
    os.dup2(prints, sys.stderr.fileno())
    os.close(prints)
    return trainer.main(template, inlet, outlet, beyond)


def written(process: int | str = "self") -> int:
    """Bytes of a process that RLIMIT_DATA counts; 0 where it is not known."""
    with suppress(OSError):
        return int(Path(f"/proc/{process}/statm").read_text().split()[5]) * resource.getpagesize()
    return 0


def main() -> int:
    parent, descriptor = map(int, sys.argv[1:])
    die_with(parent)
    Template(socket.socket(fileno=descriptor)).serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())
