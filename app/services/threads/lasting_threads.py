"""Threads that live as long as their process: whatever an action raises is logged, and it is run again."""

import threading
from collections.abc import Callable

import structlog

log = structlog.get_logger(__name__)


def repeat(action: Callable[[], object], seconds: float, stopped: threading.Event, *, name: str) -> threading.Thread:
    """Start a thread that runs the action every so many seconds until `stopped` is set, and return it.

    name: that of the thread, with which a failure is logged.
    """

    def run() -> None:
        while not stopped.wait(seconds):
            try:
                action()
            except Exception:  # the next time may be better, and there must be one
                log.exception("thread_failed", thread=name)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread
