"""Processor cores that this process may use, and a lock for each, shared by all that computes for jobs on a machine.

A job that runs holds a core. What it does at once, in forks or threads, takes a core that nobody holds, and gives it
back as soon as a job waits for one. A core is held by a lock on a file, which the system releases with the process that
holds it, however that ends.
"""

import fcntl
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple, Self

from app.base.settings import Settings

CGROUPS = Path("/sys/fs/cgroup")
WORKER_BYTES = 512 << 20
"""Memory of a worker besides that of its jobs."""
MAX_SLOTS = 8
"""Largest number of slots of a worker that no setting states."""
RETRY_SECONDS = 0.02
"""Time between two attempts of a job to take a core."""


@cache
def count_cores() -> int:
    """Number of cores that this process may use: by its affinity, and by the quota of its control groups."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(allowed, *_quotas(CGROUPS, _own_groups())))


def count_slots(settings: Settings) -> int:
    """Number of jobs that a worker runs at once."""
    if settings.worker_concurrency is not None:
        return settings.worker_concurrency
    return max(1, min(count_cores(), MAX_SLOTS, (count_memory() - WORKER_BYTES) // settings.job_memory_bytes))


@cache
def count_memory() -> int:
    """Bytes of memory that this process may use: of the machine, and by the limits of its control groups."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for folder in _folders(CGROUPS, _own_groups()):
        for name in ("memory.max", "memory.limit_in_bytes"):
            with suppress(OSError, ValueError):  # no such file, or no limit
                limits.append(int((folder / name).read_text()))
    return min(limits)


def _own_groups() -> list[str]:
    with suppress(OSError):
        lines = Path("/proc/self/cgroup").read_text("utf-8", "replace").splitlines()
        return [path for *_, path in (line.split(":", 2) for line in lines)]
    return []


def _quotas(root: Path, groups: list[str]) -> Iterator[int]:
    """Whole cores of each quota of the groups and of those that they are in, and a number that limits nothing."""
    yield 1 << 20
    for folder in _folders(root, groups):
        with suppress(OSError, ValueError):  # no such file, or no quota
            quota, period = (folder / "cpu.max").read_text().split()
            yield int(quota) // int(period)
        with suppress(OSError, ValueError):  # the same of an older kernel, where -1 is none
            microseconds = int((folder / "cpu.cfs_quota_us").read_text())
            if microseconds > 0:
                yield microseconds // int((folder / "cpu.cfs_period_us").read_text())


def _folders(root: Path, groups: list[str]) -> set[Path]:
    """Folders of the groups and of those that they are in, of all controllers that limit processors and memory."""
    kinds = [root, *(root / name for name in ("cpu", "cpu,cpuacct", "memory"))]
    leaves = {kind / group.lstrip("/") for kind in kinds for group in ("", *groups)}
    return {folder for leaf in leaves for folder in (leaf, *leaf.parents) if folder.is_relative_to(root)}


class Core:
    """A core that is held until it is closed."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Cores(NamedTuple):
    """Cores that all processes of this user share that name the same folder."""

    folder: str
    size: int

    @classmethod
    def of_machine(cls) -> Self:
        """Those that this process may use, shared with the other workers of its user and its folder of temporary files.

        One core, so that nothing is done at once, where that folder is no place for locks.
        """
        folder = Path(tempfile.gettempdir()) / f"valiant-cores-{os.getuid()}"
        with suppress(OSError):
            folder.mkdir(mode=0o700, exist_ok=True)
            status = folder.lstat()
            if folder.is_dir() and not folder.is_symlink() and status.st_uid == os.getuid():
                return cls(str(folder), count_cores())
        return cls(str(folder), 1)

    def take(self) -> Core | None:
        """A core that nobody holds; None if there is none."""
        return next(filter(None, (self._lock(f"core-{number}") for number in range(self.size))), None)

    @property
    def is_wanted(self) -> bool:
        """True if a job waits for a core."""
        probe = self._lock("wanted", fcntl.LOCK_SH)
        if probe is None:
            return True
        probe.close()
        return False

    @contextmanager
    def held(self, over: threading.Event) -> Iterator[bool]:
        """Hold a core within the block, as soon as there is one: those that work for other jobs are given up.

        False if it was over before there was one.
        """
        mark = None
        while (core := self.take()) is None and not over.wait(RETRY_SECONDS):
            mark = mark or self._lock("wanted")
        if mark is not None:
            mark.close()
        try:
            yield core is not None
        finally:
            if core is not None:
                core.close()

    def _lock(self, name: str, kind: int = fcntl.LOCK_EX) -> Core | None:
        descriptor = None
        try:
            path = os.path.join(self.folder, name)  # noqa: PTH118  taken many times a second
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except OSError:
            if descriptor is not None:
                os.close(descriptor)
            return None
        return Core(descriptor)
