"""Folders of compiled kernels: the one that is shipped with this package, which is only read, and one to write to.

Files of compiled code are run by whoever reads them: a file or folder is used only if nobody but its owner may write to
it, and if that is root or the user of this process. Below each folder there is one for each `tag`.
"""

import hashlib
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

from app.ml.numerics.processor import processor

PACKAGED = Path(__file__).parents[2] / "kernels"
"""Kernels that come with an installation: `valiant warm --out` compiles them."""
PINNED = ("NUMBA_CACHE_DIR", "VALIANT_KERNELS", "VALIANT_PROCESSOR", "XDG_CACHE_HOME")
"""Variables on which kernels and their folders depend: processes that share kernels have them alike."""
OTHERS_WRITE = 0o022


def shipped_folder() -> Path:
    """The folder that kernels are only read from: VALIANT_KERNELS, or the one in this package."""
    return Path(os.environ.get("VALIANT_KERNELS") or PACKAGED)


@cache
def tag() -> str:
    """Name of the folder of kernels that this interpreter and these libraries compile for `processor`."""
    name, features = processor()
    special = f"-{hashlib.sha256(features.encode()).hexdigest()[:8]}" if features else ""
    interpreter = f"{sys.implementation.cache_tag}{sys.abiflags}"
    return f"{interpreter}-numba{version('numba')}-llvmlite{version('llvmlite')}-{name}{special}"


def kernel_files(folder: Path, base: str, signatures: int) -> list[Path]:
    """Files of a compiled kernel, by numba's names: an index, and the code of each signature."""
    return [folder / f"{base}.nbi", *(folder / f"{base}.{number}.nbc" for number in range(1, signatures + 1))]


def trusted_folders() -> list[Path]:
    """Folders to read kernels of this process from, in their order."""
    roots = (shipped_folder(), cache_folder())
    return [root / tag() for root in roots if root is not None and is_trusted(root)]


def holds_kernel(folder: Path, base: str, signatures: int) -> bool:
    """True if a folder that can be trusted has all files of a kernel, which can be trusted too."""
    *others, last = kernel_files(folder, base, signatures)
    if not (last.exists() and is_trusted(folder)):
        return False
    return all(map(Path.exists if is_private(folder) else is_trusted, [*others, last]))


def is_private(folder: Path) -> bool:
    """True if only the owner can read the folder: then the mode of its files does not matter."""
    return not folder.stat().st_mode & 0o077


def is_trusted(path: Path) -> bool:
    """True for what exists, is no link, and can be changed by root or by the user of this process alone."""
    try:
        status = path.lstat()
    except OSError:
        return False
    return not stat.S_ISLNK(status.st_mode) and status.st_uid in {0, os.getuid()} and not status.st_mode & OTHERS_WRITE


def tagged_folder() -> Path | None:
    """The folder that kernels of this process are written to; None where nothing can be written."""
    root = cache_folder()
    if root is None:
        return None
    with suppress(OSError):
        (root / tag()).mkdir(mode=0o700, exist_ok=True)
        return root / tag()
    return None


def cache_folder() -> Path | None:
    """A folder to write compiled code to; None where nothing can be written.

    It is NUMBA_CACHE_DIR, or among the user's caches, or where temporary files go.
    """
    for folder in _candidates():
        with suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if is_trusted(folder) and os.access(folder, os.W_OK | os.X_OK):
                return folder
    with suppress(OSError):
        return _temporary()
    return None


@cache
def _temporary() -> Path:
    return Path(tempfile.mkdtemp(prefix="valiant-"))


def _candidates() -> Iterator[Path]:
    if from_environment := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(from_environment)
    with suppress(RuntimeError):  # a user without a home
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "valiant"
    with suppress(OSError):  # no folder for temporary files either
        yield Path(tempfile.gettempdir()) / f"valiant-{os.getuid()}"
