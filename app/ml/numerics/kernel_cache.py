"""Folders in which numba reads and writes the compiled form of a kernel. Only this file relies on numba's locators.

The name of a kernel has the digest of all that its compiled form depends on, so nothing else invalidates it: neither
another path of the sources nor another time of their change. numba imports this by name, with the first kernel.
"""

from pathlib import Path
from typing import Any, Self

from numba.core.caching import _CacheLocator

DISAMBIGUATOR = "0"
"""The digest in the name distinguishes kernels."""


class KernelLocator(_CacheLocator):
    """The folder that a function carries as `kernel_folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> bytes:
        return b""

    def get_disambiguator(self) -> str:
        return DISAMBIGUATOR

    @classmethod
    def from_function(cls, function: Any, _file: str) -> Self | None:
        folder = getattr(function, "kernel_folder", None)
        return None if folder is None else cls(folder)
