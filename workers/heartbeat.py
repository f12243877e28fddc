"""A heartbeat for whoever watches this process from outside: a file that is touched every second.

It begins when the worker can run jobs: the first beat means that it is ready. It waits for no server, so that a worker
whose database or broker hangs is not taken for a frozen one. That the worker receives its messages is the business of
`workers.watchdog`, which ends the process otherwise.
"""

import threading
import time
from pathlib import Path

import structlog

BEAT_SECONDS = 1.0
log = structlog.get_logger(__name__)


def beat(file: Path) -> None:
    """From now on, as long as this process runs."""
    threading.Thread(target=_beat, args=(file,), name="pulse", daemon=True).start()


def _beat(file: Path) -> None:
    while True:
        try:
            file.touch()  # a full disk lets nobody make a file, but touch it
        except Exception as error:  # noqa: BLE001  the next one may succeed
            log.warning("not_beaten", error=type(error).__name__)
        time.sleep(BEAT_SECONDS)
