"""The watchdog of a worker: one whose consumer is lost restarts.

While the broker responds it sends this worker a canary through it. A worker with a free slot that receives nothing for
`watchdog_seconds` has lost its consumer without noticing: it leaves and is started again. That time begins when the
consumer has, and counts only as far as the watchdog itself looked on time.
"""

import os
import time

import structlog

from app.composition.wiring import Services
from app.messaging.broker import CANARY
from app.processes.liveness import HARD_LIMIT_SECONDS
from workers.job_slots import Runner

log = structlog.get_logger(__name__)

EX_TEMPFAIL = 75
"""Exit status of a worker that wants to be started again (sysexits.h)."""
FAREWELL_SECONDS = 5.0
UNHEARD_SWEEPS = 3
"""Canaries that may be unheard before jobs are taken from the database."""


class Watchdog:
    def __init__(self, services: Services, runner: Runner, canary_queue: str) -> None:
        """canary_queue: of messages that come back to this worker and to no other."""
        self._services = services
        self._runner = runner
        self._canary_queue = canary_queue
        self._patience_seconds = HARD_LIMIT_SECONDS
        self.received()

    def begin(self) -> None:
        """The consumer is ready: from now on its silence is that of `watchdog_seconds` at most."""
        self._patience_seconds = self._services.settings.watchdog_seconds
        self.received()

    def received(self) -> None:
        """A message has reached this worker, or there was no reason for one to. Waits for nothing."""
        self._silent_seconds, self._looked_at = 0.0, time.monotonic()

    def watch(self) -> bool:
        """Leave if the consumer is lost, else send it a canary.

        False if the broker refuses it, as on a full disk, or if the last ones did not arrive: jobs do not wait for the
        consumer then.
        """
        sweep_seconds, now = self._services.settings.sweep_seconds, time.monotonic()
        self._silent_seconds += min(now - self._looked_at, 2 * sweep_seconds)
        self._looked_at = now
        if self._silent_seconds > self._patience_seconds:
            self._leave()
        try:
            self._services.celery.send_task(CANARY, queue=self._canary_queue)
        except Exception as error:  # noqa: BLE001 - every transport has its own
            log.warning("canary_refused", reason=type(error).__name__)
            self.received()
            return False
        return self._silent_seconds <= UNHEARD_SWEEPS * sweep_seconds

    def _leave(self) -> None:
        log.critical("consumer_lost")
        self._runner.stop()
        self._runner.join(FAREWELL_SECONDS)
        os._exit(EX_TEMPFAIL)
