"""Runs jobs in the slots of one worker process."""

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import structlog
from sqlalchemy.exc import SQLAlchemyError

from app.base.errors import Cancelled, LeaseLost
from app.base.project_context import in_project
from app.base.tracing import trace_id
from app.composition.wiring import Services
from app.processes.processor_cores import Cores, count_slots
from app.store.jobs.job_records import Claim
from workers.supervisor import Attempt
from workers.trainers import Trainers
from workers.verdict import Verdict

log = structlog.get_logger(__name__)


class Runner:
    """Runner of as many attempts at a time as there are slots."""

    def __init__(self, services: Services, trainers: Trainers, cores: Cores) -> None:
        """cores: for the attempts and for what they do at once."""
        self._services = services
        self._trainers = trainers
        self._cores = cores
        self._count = count_slots(services.settings)
        self._slots = threading.BoundedSemaphore(self._count)
        self._attempts: set[Attempt] = set()
        self._taken = 0
        """Slots that are not free: attempts run in them, or they wait for a trainer."""
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._closed = False

    @property
    def busy(self) -> bool:
        """True if every slot is taken."""
        return self._taken >= self._count

    def slots(self) -> dict[str, int]:
        """Number of slots that run attempts, wait for a trainer, and are idle."""
        with self._lock:
            running, taken = len(self._attempts), self._taken
        return {"running": running, "starting": taken - running, "idle": self._count - taken}

    def run(self) -> None:
        """One attempt of the job whose turn it is: each message, whatever job it is about, brings one forward."""
        with self._slot():
            self._run()

    def run_unannounced(self) -> bool:
        """The same without a message. False if there was no job or no free slot."""
        with self._slot(blocking=False) as is_free:
            return is_free and self._run()

    def stop(self) -> None:
        """Claim nothing more; end the trainers at work and give their jobs back."""
        with self._lock:
            self._closed = True
            attempts = list(self._attempts)
        for attempt in attempts:
            attempt.end(Verdict.STOPPED)

    def join(self, timeout: float | None = None) -> bool:
        """Wait until nothing runs. False after `timeout` seconds."""
        with self._idle:
            return self._idle.wait_for(lambda: not self._attempts, timeout)

    def _run(self) -> bool:
        if self._closed:
            return False
        with closing(self._trainers.start()) as trainer:  # before the claim, whose lease would run meanwhile
            claim = self._services.attempts.claim_next()
            if claim is None:
                return False
            ids = {"job_id": str(claim.job_id), "request_id": claim.request_id, "attempt": claim.attempt}
            if claim.traceparent is not None:
                ids["trace_id"] = trace_id(claim.traceparent)
            with in_project(claim.project_id), structlog.contextvars.bound_contextvars(**ids):
                self._attempt(Attempt(self._services, claim, trainer, self._cores))
                self._announce_held_back(claim)
        return True

    def _announce_held_back(self, claim: Claim) -> None:
        try:
            self._services.attempts.announce_held_back(claim)
        except SQLAlchemyError as error:  # a sweep announces it, once the database is back
            log.warning("next_not_announced", error=type(error).__name__)

    def _attempt(self, attempt: Attempt) -> None:
        self._add(attempt)
        try:
            log.info("attempt_started")
            attempt.run()
        except (Cancelled, LeaseLost) as end:
            log.info("attempt_over", reason=end.code)
        except Exception:
            log.exception("attempt_lost")  # its lease runs out, and a sweep takes the job up
        finally:
            with self._idle:
                self._attempts.discard(attempt)
                self._idle.notify_all()

    @contextmanager
    def _slot(self, *, blocking: bool = True) -> Iterator[bool]:
        """True with a slot that is taken until the block ends; False if none is free and the call may not block."""
        if not self._slots.acquire(blocking=blocking):
            yield False
            return
        self._take(1)
        try:
            yield True
        finally:
            self._take(-1)
            self._slots.release()

    def _take(self, count: int) -> None:
        with self._lock:
            self._taken += count

    def _add(self, attempt: Attempt) -> None:
        with self._lock:
            self._attempts.add(attempt)
            closed = self._closed
        if closed:  # the stop came between claim and here
            attempt.end(Verdict.STOPPED)
