"""Periodic duties of a worker beside its jobs, every few seconds: sweep, stand in for a silent broker, watch itself."""

import os
import socket
import threading
import time
from contextlib import suppress

import structlog
from sqlalchemy.exc import SQLAlchemyError

from app.base.settings import Settings
from app.composition.wiring import Services
from app.messaging.broker import mend
from app.messaging.queue import depth
from workers.compiler import Compiler
from workers.job_slots import Runner
from workers.watchdog import Watchdog

log = structlog.get_logger(__name__)
MONITOR_SECONDS = 60.0
"""Seconds between two looks for windows of monitors that are to be tested."""


def name(settings: Settings) -> str:
    """Name of this worker, and of the one that takes its place, with the same heartbeat, or pid, on the same host."""
    return f"{socket.gethostname()}:{settings.beat_file or os.getpid()}"


class Tending:
    """A thread that lives as long as the worker and survives whatever happens in it.

    With the broker silent it runs queued jobs itself, one after the other: the rows are the queue. While the broker
    responds, its watchdog looks after the consumer of this worker.
    """

    def __init__(self, services: Services, runner: Runner, watchdog: Watchdog, compiler: Compiler) -> None:
        self._name = name(services.settings)
        self._services = services
        self._runner = runner
        self._watchdog = watchdog
        self._compiler = compiler
        self._stopping = threading.Event()
        self._monitors_due = 0.0
        self._begun = threading.Event()
        self._standing_in = threading.Lock()

    def start(self) -> None:
        threading.Thread(target=self._tend, name="tending", daemon=True).start()

    def wait(self) -> None:
        """Return once these duties were done for the first time: the database knows this worker."""
        self._begun.wait()

    def stop(self) -> None:
        self._stopping.set()

    def leave(self) -> None:
        """Sign off: a worker that stops as requested is not a silent one."""
        with suppress(SQLAlchemyError), self._services.work.across_projects() as w:
            w.workers.left(self._name)

    def _tend(self) -> None:
        while not self._stopping.is_set():
            try:
                self._once()
            except Exception:  # the next time may be better, and there must be one
                log.exception("sweep_failed")
            self._stopping.wait(self._services.settings.sweep_seconds)

    def _once(self) -> None:
        held = depth(self._services.celery) if mend(self._services.celery) else None
        if held is not None and not self._runner.busy:
            held = held if self._watchdog.watch() else None
        else:
            self._watchdog.received()
        if held is None:
            threading.Thread(target=self._stand_in, name="stand-in", daemon=True).start()
        self._services.recovery.sweep(held)
        if time.monotonic() >= self._monitors_due:
            self._monitors_due = time.monotonic() + MONITOR_SECONDS
            self._services.monitors.sweep()
        with self._services.work.across_projects() as w:
            left = self._compiler.left
            w.workers.seen(
                self._name,
                self._services.attempts.holder,
                kernels_left_seconds=left and left.seconds,
                compiling=left and str(left),
            )
        self._begun.set()

    def _stand_in(self) -> None:
        """Jobs from the database, while there are any and the broker is silent."""
        if not self._standing_in.acquire(blocking=False):
            return
        try:
            while self._runner.run_unannounced() and depth(self._services.celery) is None:
                pass
        finally:
            self._standing_in.release()
