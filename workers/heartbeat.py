"""A heartbeat for whoever watches this process from outside: a file that is touched every second.

It begins when the worker can run jobs: the first beat means that it is ready. It waits for no server, so that a worker
whose database or broker hangs is not taken for a frozen one. That the worker receives its messages is the business of
`workers.watchdog`, which ends the process otherwise.
"""

import threading
import time
from contextlib import suppress
from pathlib import Path

BEAT_SECONDS = 1.0


def beat(file: Path) -> None:
    """From now on, as long as this process runs."""
    threading.Thread(target=_beat, args=(file,), name="pulse", daemon=True).start()


def _beat(file: Path) -> None:
    while True:
        with suppress(OSError):  # a full disk lets nobody make a file, but touch it
            file.touch()
        time.sleep(BEAT_SECONDS)
