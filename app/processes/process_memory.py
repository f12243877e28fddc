"""Memory of a process: the limit of a job, and a serving process that keeps no more than serving needs."""

import ctypes
import gc
import mmap
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

OPTIONAL = frozenset({"pandas", "pydantic.v1", "rich", "watchfiles", "yaml"})
"""Modules that libraries of a serving process import if they are present, and that serving does not use: 60 MiB."""
SMAPS = Path("/proc/self/smaps")


def limit(size: int) -> None:
    """Limit what this process can write, in bytes: RLIMIT_DATA, not the address space that libraries reserve."""
    resource.setrlimit(resource.RLIMIT_DATA, (size, size))


class _Absent(MetaPathFinder):
    def find_spec(self, name: str, _path: Any, _target: Any = None) -> None:
        if name in OPTIONAL:
            raise ModuleNotFoundError(f"{name} is not for this process.", name=name)


def without_optional() -> None:
    """To later imports the optional libraries are not installed."""
    sys.meta_path.insert(0, _Absent())


@contextmanager
def uncollected() -> Iterator[None]:
    """While much is imported: all of it stays, and going through it for garbage would take a third of the time.

    Nor is it gone through later, when the first few objects are made: what pydantic compiles is slow to visit.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def settle() -> None:
    """Once everything is imported: what stays is left out of later collections, what is free goes back.

    And nothing holds the event loop up for long: requests in flight are not gone through again and again as possible
    garbage, and a thread that computes in Python, as one that imports a compiler does, makes room after half a
    millisecond instead of five.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000)
    sys.setswitchinterval(0.0005)
    give_back()
    let_files_go()


def give_back() -> None:
    """Free memory goes to the system: the allocator of glibc, alone in this, would keep it, however little is used."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def let_files_go() -> None:
    """Pages that hold just what a file holds, the code of libraries above all, are no longer mapped.

    Most were read once, by a start or by a compiler, and would count as this process's until memory is short. What is
    needed again is found in the system's cache of files, in a microsecond a page. Linux alone supports it.
    """
    if SMAPS.exists():
        advise = ctypes.CDLL(None).madvise
        for start, end in _copies():
            advise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), mmap.MADV_DONTNEED)


def _copies() -> Iterator[tuple[int, int]]:
    """Start and end of the maps of files for reading of which no page was ever changed, in memory or swapped out."""
    place, changed = (0, 0), 0
    for line in [*SMAPS.read_text("utf-8", "replace").splitlines(), "0-0 end"]:
        name, value, *_ = [*line.split(), ""]
        if name in {"Anonymous:", "Swap:"}:
            changed += int(value)
        elif not name.endswith(":"):
            if place != (0, 0) and not changed:
                yield place
            readable = value in {"r--p", "r-xp"} and "/" in line
            start, _, end = name.partition("-")
            place, changed = (int(start, 16), int(end, 16)) if readable else (0, 0), 0
