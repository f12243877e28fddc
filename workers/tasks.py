"""Celery tasks: the messages that arrive over the broker."""

from collections.abc import Callable
from uuid import UUID

import structlog
from celery import Celery

from app.broker import CANARY, LEND, RUN
from workers.runner import Runner

log = structlog.get_logger(__name__)


def register(celery: Celery, runner: Runner, received: Callable[[], object]) -> None:
    """`received` is called for every message: it shows that the broker reaches this worker."""

    @celery.task(name=RUN)  # type: ignore[untyped-decorator] # celery is not typed
    def run(job_id: str) -> None:
        received()
        runner.run(UUID(job_id))

    @celery.task(name=LEND)  # type: ignore[untyped-decorator] # as above
    def lend(job_id: str) -> None:
        received()
        runner.lend(UUID(job_id))

    @celery.task(name=CANARY)  # type: ignore[untyped-decorator] # as above
    def canary() -> None:
        received()
        log.debug("canary_received")
