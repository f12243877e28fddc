"""A serving process that keeps no more memory than serving needs."""

import ctypes
import gc
import sys
from importlib.abc import MetaPathFinder
from typing import Any

OPTIONAL = frozenset({"pandas", "rich", "watchfiles", "yaml"})
"""What pyarrow, structlog, uvicorn and kombu import wherever they find it, and nothing that serves uses: 60 MiB."""


class _Absent(MetaPathFinder):
    def find_spec(self, name: str, _path: Any, _target: Any = None) -> None:
        if name in OPTIONAL:
            raise ModuleNotFoundError(f"{name} is not for this process.", name=name)


def without_optional() -> None:
    """To later imports the optional libraries are not installed."""
    sys.meta_path.insert(0, _Absent())


def settle() -> None:
    """Once everything is imported: what stays is left out of later collections, what is free goes back."""
    gc.collect()
    gc.freeze()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:  # glibc's alone; it keeps tens of MiB that compiling modules freed
        trim(0)
