"""Compiled code that any prediction is faster with, fetched once there is something to predict.

A process with few requests does without: with what reads it from disk, or compiles it, it takes 65 MB.
"""

import threading

from app.ml.numerics.decoding.json_numbers import scan_small
from app.ml.preparation.compiled import columns
from app.process_memory import let_files_go
from app.settings import MiB

PATIENCE = MiB
"""Bytes of bodies that are processed without compiled code."""


class Compiling:
    def __init__(self) -> None:
        self._came = 0

    def came(self, size: int) -> None:
        """So many bytes of a body. Fetches, in a thread, as soon as all that came are enough."""
        if self._came < PATIENCE:
            self._came += size
            if self._came >= PATIENCE:
                threading.Thread(target=_fetch, name="compiler", daemon=True).start()


def _fetch() -> None:
    _ = scan_small.compiled
    columns.fetch()
    let_files_go()  # the compiler's, which lies idle again
