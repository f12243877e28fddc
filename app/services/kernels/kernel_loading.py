"""Compiled code and models that a process loads before it is ready.

By default a process begins with what any prediction is faster with and with the models that aliases name. A process
with VALIANT_WARM=false does without both until there is something to predict: with what reads compiled code from disk,
or compiles it, it takes 65 MB.
"""

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import closing

import structlog

from app.base.settings import MiB
from app.ml.numerics.decoding.json_numbers import scan, scan_small
from app.ml.preparation.compiled import columns
from app.processes.process_memory import let_files_go
from app.schemas.health import Check
from app.services.kernels.warming import warm

PATIENCE = MiB
"""Bytes of bodies that are processed without compiled code."""
WARM_SECONDS, COMPILE_SECONDS = 5.0, 120.0
"""Longest time before a process is ready: to load what is on disk, and to compile what models need that it serves."""
log = structlog.get_logger(__name__)


class Compiling:
    """Fetches compiled code once bodies of many bytes came."""

    def __init__(self) -> None:
        self._came = 0

    def came(self, size: int) -> None:
        """So many bytes of a body. Fetches, in a thread, as soon as all that came are enough."""
        if self._came < PATIENCE:
            self._came += size
            if self._came >= PATIENCE:
                threading.Thread(target=_fetch, name="compiler", daemon=True).start()


class Warming:
    """A thread that loads what a process serves with, and the check of readiness that waits for it."""

    def __init__(self, models: Callable[[], Iterable[Callable[[], object]]]) -> None:
        """models: functions that load the models to begin with, each one."""
        self._models = models
        self._begun: float | None = None
        self._served = 0
        self._detail: str | None = None
        self._over = threading.Event()
        self._stopping = threading.Event()

    def start(self) -> None:
        self._begun = time.monotonic()
        threading.Thread(target=self._warm, name="warming", daemon=True).start()

    def stop(self) -> None:
        self._stopping.set()

    def wait(self, seconds: float) -> bool:
        """True if all is loaded within so many seconds, or could not be."""
        return self._over.wait(seconds)

    def wait_for_disk(self) -> None:
        """Wait until all is loaded that is on disk, `WARM_SECONDS` at most, and for nothing that has to be compiled."""
        until = time.monotonic() + WARM_SECONDS
        while not self._over.wait(0.02) and self._detail is None and time.monotonic() < until:
            pass

    def checks(self) -> list[Check]:
        """Checks that are not over, required for so long as a process may wait for them."""
        if self._begun is None or self._over.is_set():
            return []
        seconds = time.monotonic() - self._begun
        limit = COMPILE_SECONDS if self._served and self._detail else WARM_SECONDS
        detail = self._detail or "Kernels and models are being loaded."
        return [Check(name="kernels", ok=False, required=seconds < limit, detail=detail)]

    def _warm(self) -> None:
        begun = time.monotonic()
        try:
            self._load()
        except Exception:  # each request loads what it needs, and reports what is wrong with it
            log.exception("not_warmed")
        finally:
            self._over.set()
            log.info("warmed", seconds=round(time.monotonic() - begun, 2), models=self._served)

    def _load(self) -> None:
        loads = list(self._models())
        self._served = len(loads)
        with closing(warm(serving=True)) as steps:
            for left in steps:  # in processes of their own: a compiler in this one would hold up its requests
                if self._detail is None:
                    log.info("kernels_compiling", detail=str(left))
                self._detail = str(left)
                if self._stopping.is_set():
                    return
        self._detail = None
        _fetch()
        until = time.monotonic() + WARM_SECONDS
        for load in loads:
            if time.monotonic() > until or self._stopping.is_set():
                return
            try:
                load()
            except Exception as error:  # noqa: BLE001 - its requests are given the reason
                log.warning("model_not_warmed", reason=type(error).__name__)


def _fetch() -> None:
    _ = scan_small.compiled, scan.compiled
    columns.fetch()
    let_files_go()  # the compiler's, which lies idle again
