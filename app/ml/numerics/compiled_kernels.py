"""A mark on disk that every kernel of this code was compiled on this machine: reading them compiles nothing then."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from app.ml.numerics.jit import cache_folder, digest_of, load, origins


def all_compiled() -> bool:
    """True if `compile_all` has ended before with the same sources, libraries and processor."""
    mark = _mark()
    return mark is not None and mark.exists()


def compile_all() -> None:
    """Compile what is not on disk, and leave the mark."""
    for _ in load():
        pass
    with suppress(OSError):
        if (mark := _mark()) is not None:
            mark.touch()


def _mark() -> Path | None:
    folder = cache_folder()
    return None if folder is None else folder / f"all-{digest_of([*_processor(), *sorted(_sources())])}.compiled"


def _processor() -> Iterator[str]:
    """On which the compiled form depends, with its makers."""
    binding: Any = importlib.import_module("llvmlite.binding")
    yield from (sys.version, version("numba"), version("llvmlite"))
    yield from (binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten())


def _sources() -> Iterator[str]:
    """Each kernel, and when its file changed: numba compiles anew what is in a changed file."""
    for file, name in origins():
        status = file.stat()
        yield f"{file} {status.st_mtime_ns} {status.st_size} {name}"
