"""Periodic duties of a worker beside its jobs, every few seconds: sweep, replace the broker, watch itself."""

import os
import socket
import threading
import time
from contextlib import suppress

import structlog
from sqlalchemy.exc import SQLAlchemyError

from app.broker import CANARY, mend
from app.queue import depth
from app.settings import Settings
from app.wiring import Services
from workers.job_slots import Runner

log = structlog.get_logger(__name__)

EX_TEMPFAIL = 75
"""Exit status of a worker that wants to be started again (sysexits.h)."""
FAREWELL_SECONDS = 5.0
UNHEARD_SWEEPS = 3
"""Canaries that may be unheard before jobs are taken from the database."""


def name(settings: Settings) -> str:
    """Name of this worker, and of the one that takes its place, with the same heartbeat, or pid, on the same host."""
    return f"{socket.gethostname()}:{settings.beat_file or os.getpid()}"


class Tending:
    """A thread that lives as long as the worker and survives whatever happens in it.

    With the broker silent it runs queued jobs itself, one after the other: the rows are the queue.
    While the broker responds it sends this worker a canary through it. A worker with a free slot that
    receives nothing for `watchdog_seconds` has lost its consumer without noticing: it leaves and is started again.
    """

    def __init__(self, services: Services, runner: Runner, canary_queue: str) -> None:
        self._name = name(services.settings)
        self._services = services
        self._runner = runner
        self._canary_queue = canary_queue
        self._stopping = threading.Event()
        self._received_at = time.monotonic()
        self._standing_in = threading.Lock()

    def start(self) -> None:
        threading.Thread(target=self._tend, name="tending", daemon=True).start()

    def stop(self) -> None:
        self._stopping.set()

    def leave(self) -> None:
        """Sign off: a worker that stops as requested is not a silent one."""
        with suppress(SQLAlchemyError), self._services.work() as w:
            w.workers.left(self._name)

    def received(self) -> None:
        self._received_at = time.monotonic()

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
            held = held if self._watch() else None
        else:
            self.received()
        if held is None:
            threading.Thread(target=self._stand_in, name="stand-in", daemon=True).start()
        self._services.recovery.sweep(held)
        with self._services.work() as w:
            w.workers.seen(self._name)

    def _stand_in(self) -> None:
        """Jobs from the database, while there are any and the broker is silent."""
        if not self._standing_in.acquire(blocking=False):
            return
        try:
            while self._runner.run_oldest() and depth(self._services.celery) is None:
                pass
        finally:
            self._standing_in.release()

    def _watch(self) -> bool:
        """Leave if the consumer is lost, else send it a canary.

        False if the broker refuses it, as on a full disk, or if the last ones did not arrive: jobs do not wait for the
        consumer then.
        """
        settings, silence = self._services.settings, time.monotonic() - self._received_at
        if silence > settings.watchdog_seconds:
            self._leave()
        try:
            self._services.celery.send_task(CANARY, queue=self._canary_queue)
        except Exception as error:  # noqa: BLE001 - every transport has its own
            log.warning("canary_refused", reason=type(error).__name__)
            self.received()
            return False
        return silence <= UNHEARD_SWEEPS * settings.sweep_seconds

    def _leave(self) -> None:
        log.critical("consumer_lost")
        self._runner.stop()
        self._runner.join(FAREWELL_SECONDS)
        os._exit(EX_TEMPFAIL)
