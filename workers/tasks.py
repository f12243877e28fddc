"""What comes over the broker."""

from collections.abc import Callable
from uuid import UUID

import structlog
from celery import Celery

from app.broker import CANARY, LEND, RUN
from workers.runner import Runner

log = structlog.get_logger(__name__)


def register(celery: Celery, runner: Runner, heard: Callable[[], object]) -> None:
    """`heard` is told of every message: the broker and this worker are on speaking terms."""

    @celery.task(name=RUN)  # type: ignore[untyped-decorator] # celery is not typed
    def run(job_id: str) -> None:
        heard()
        runner.run(UUID(job_id))

    @celery.task(name=LEND)  # type: ignore[untyped-decorator] # as above
    def lend(job_id: str) -> None:
        heard()
        runner.lend(UUID(job_id))

    @celery.task(name=CANARY)  # type: ignore[untyped-decorator] # as above
    def canary() -> None:
        heard()
        log.debug("canary_heard")
