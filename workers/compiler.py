"""Compiles the kernels that are not on disk, beside the jobs of a worker and behind them."""

import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING

import structlog

from app.services.kernels.warming import warm

if TYPE_CHECKING:
    from app.ml.numerics.compiled_kernels import Compiling

LOGGED_SECONDS = 5.0
"""Time between two lines in the log."""
log = structlog.get_logger(__name__)


class Compiler:
    """A thread that looks after the processes that compile. They end with it."""

    def __init__(self) -> None:
        self.left: Compiling | None = None
        """Kernels that remain to be compiled; None: there are none."""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._compile, name="compiler", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _compile(self) -> None:
        due = 0.0
        try:
            with closing(warm()) as steps:
                for self.left in steps:
                    if (now := time.monotonic()) >= due:
                        log.info("kernels_compiling", detail=str(self.left))
                        due = now + LOGGED_SECONDS
                    if self._stopping.is_set():
                        return
            if self.left is not None:
                log.info("kernels_compiled")
        except OSError:  # no process to be had, or no disk: jobs compile what they need
            log.exception("kernels_not_compiled")
        finally:
            self.left = None
