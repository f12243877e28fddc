"""Locks of kernels: one process compiles each, others wait for it or go on with what they need first."""

import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

COMPILING_SECONDS = 180.0
"""Longest wait for another process that compiles the same kernel, which on a busy machine takes minutes; one that is
frozen must not hold up the others for ever.
"""
ANNOUNCED_SECONDS = 1.0
"""Time between two calls of `announce` while another process compiles."""


def is_wanted(folder: Path, family: str) -> bool:
    """True if a process waits, or has waited, for a kernel of this family."""
    return wanted_file(folder, family).exists()


def wanted_file(folder: Path, family: str) -> Path:
    """The file that is there once a process waits for a kernel of this family."""
    return folder / f"{family}.wanted"


@contextmanager
def compiling_alone(path: Path | None, announce: Callable[[], None]) -> Iterator[None]:
    """Hold the lock of a kernel: one process compiles it, and those that wait read it from disk afterwards.

    Whoever waited for the longest time goes on without it. announce: called now, and each second of a wait.
    """
    with lock_file(path) as file:
        until, due = time.monotonic() + COMPILING_SECONDS, 0.0
        while True:
            now = time.monotonic()
            if now >= due:
                announce()
                due = now + ANNOUNCED_SECONDS
            if file is None or try_lock(file.fileno()) or now >= until:
                break
            time.sleep(0.02)
        yield


@contextmanager
def lock_file(path: Path | None) -> Iterator[TextIO | None]:
    """The opened file; None where no file can be written."""
    file = None
    with suppress(OSError):
        file = None if path is None else path.open("w")
    try:
        yield file
    finally:
        if file is not None:
            file.close()


def try_lock(descriptor: int) -> bool:
    """True if no other process holds the lock; this one does then."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
