"""Celery tasks: the messages that arrive over the broker."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import structlog
from celery import Celery
from celery.worker import state
from kombu.asynchronous import get_event_loop

from app.messaging.broker import CANARY, RUN
from workers.job_slots import Runner

LEAVING_SECONDS = 0.002
"""A task that has returned leaves its slot within about so long."""

log = structlog.get_logger(__name__)


def register(celery: Celery, runner: Runner, received: Callable[[], object]) -> None:
    """`received` is called for every message: it shows that the broker reaches this worker."""

    @celery.task(name=RUN, bind=True)  # type: ignore[untyped-decorator] # celery is not typed
    def run(task: Any, job_id: str) -> None:  # noqa: ARG001  the id is that of the message, for people
        received()
        with _looking_for_the_next(task):
            runner.run()

    @celery.task(name=CANARY)  # type: ignore[untyped-decorator] # as above
    def canary() -> None:
        received()
        log.debug("canary_received")


@contextmanager
def _looking_for_the_next(task: Any) -> Iterator[None]:
    """Wakes the consumer when the task has left its slot: by itself it looks for a free slot once a second."""
    try:
        yield
    finally:
        if (hub := get_event_loop()) is not None:
            hub.call_soon(_when_left, hub, task.request.id)  # type: ignore[no-untyped-call] # kombu is half typed


def _when_left(hub: Any, task_id: str) -> None:
    if task_id in state.requests:
        hub.call_later(LEAVING_SECONDS, _when_left, hub, task_id)
