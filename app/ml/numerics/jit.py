"""Loops that numpy cannot vectorise, compiled by numba with their first call.

    @kernel("f8(f8[::1], f8[::1])", writes=["total"])
    def add(values, total): ...

A kernel states its types, so that a call compiles nothing new, one with other types fails, and `load` can compile
without data. Arrays it does not write may be read-only. What a kernel calls is `inner`, or another kernel.

A call takes a microsecond, most of it to look up what the arguments are. For kernels that take no longer themselves
there is `add.lean(values, total)`: the compiled form itself, which looks at next to nothing and takes 0.1 µs and 0.02
for each array. An argument is of the type that is stated then, or the result is undefined. A `bytes` is stated as
`TEXT`. With `keep_gil=True` other threads wait meanwhile: who gives the GIL up for a microsecond may get it back after
five milliseconds.

numba is imported with the first call and not before: it takes 65 MB. What was compiled is kept on disk, by whoever
`cache_folder` states, so that it is compiled once for a machine and version.
"""

import fcntl
import hashlib
import importlib
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Generic, ParamSpec, TextIO, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

TEXT = "Bytes(u1, 1, 'C')"
"""Bytes, in numba's notation: read without an array being made of them."""
INNER = {"nogil": True, "forceinline": True, "_nrt": False}
"""Part of its caller, and counting no references: numba would count them with every call, for 10 ns each."""
SELDOM = {"nogil": True}
APART = {"nogil": True, "forceinline": False, "_nrt": False}
"""Called like functions. Options that are not given are those of the caller: `SELDOM` may become part of an inner
function.
"""

COMPILING_SECONDS = 180.0
"""Longest wait for another process that compiles the same kernel, which on a busy machine takes minutes; one that is
frozen must not hold up the others for ever.
"""
_kernels: list["Kernel[..., Any]"] = []
_lock = threading.RLock()


class Kernel(Generic[P, R]):
    """A function in the part of Python that numba knows, and its compiled form."""

    def __init__(
        self,
        python: Callable[P, R],
        signatures: Sequence[str] = (),
        writes: Sequence[str] = (),
        options: Mapping[str, Any] = INNER,
    ) -> None:
        self.python = python
        """The function as it is written."""
        self._signatures = signatures
        self._writes = writes
        self._options = options
        self._compiled: Any = None
        self.lean: Callable[P, R] = self._first
        """The same, for arguments of exactly the types of the only signature: nothing makes sure of it."""
        self.__doc__, self.__name__, self.__module__ = python.__doc__, python.__name__, python.__module__

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        found: R = (self._compiled or self.compiled)(*args, **kwargs)
        return found

    @property
    def ready(self) -> bool:
        """True if a call begins at once."""
        return self._compiled is not None

    @property
    def compiled(self) -> Any:
        """The dispatcher that numba makes; compiled, or read from disk, the first time."""
        with _lock:
            if self._compiled is None:
                self._compiled = self._compile()
                forms = list(self._compiled.overloads.values()) if len(self._signatures) == 1 else []
                self.lean = forms[0].entry_point if forms else self._compiled
        return self._compiled

    def _first(self, *args: P.args, **kwargs: P.kwargs) -> R:
        _ = self.compiled
        return self.lean(*args, **kwargs)

    def _compile(self) -> Any:
        numba = _numba()
        bare = self._bare()
        types = [self._types(numba, signature) for signature in self._signatures]
        with _alone(bare.__qualname__):
            return numba.njit(types, cache=bool(numba.config.CACHE_DIR), **self._options)(bare)

    def _bare(self) -> FunctionType:
        """The function with compiled ones in place of the kernels it calls.

        Its name on disk depends on its constants and on the functions within.
        """
        function = self.python
        assert isinstance(function, FunctionType)  # noqa: S101 - what `def` makes; for the type checker
        called = {name: value.compiled for name, value in self._named() if isinstance(value, Kernel)}
        bare = FunctionType(function.__code__, function.__globals__ | called, function.__name__, function.__defaults__)
        bare.__module__ = function.__module__
        bare.__qualname__ = f"{function.__qualname__}-{self.digest()}" if self._signatures else function.__qualname__
        return bare

    def _named(self) -> Iterator[tuple[str, Any]]:
        """The globals that the function names."""
        function: Any = self.python
        for name in function.__code__.co_names:
            if name in function.__globals__:
                yield name, function.__globals__[name]

    def digest(self) -> str:
        """Digest of all that the compiled form depends on: this code, its constants, the functions it calls."""
        function: Any = self.python
        parts = [*parts_of(function.__code__), repr(self._options)]
        for name, value in self._named():
            if isinstance(value, Kernel):
                parts.append(value.digest())
            elif isinstance(value, bool | int | float | str | tuple):
                parts.append(f"{name}={value!r}")
        return digest_of(parts)

    def _types(self, numba: Any, signature: str) -> Any:
        """The signature; an array that is not written may be read-only."""
        arguments, result = numba.core.sigutils.normalize_signature(signature)
        function: Any = self.python
        names = function.__code__.co_varnames[: len(arguments)]
        taken = [
            kind.copy(readonly=True) if isinstance(kind, numba.types.Array) and name not in self._writes else kind
            for name, kind in zip(names, arguments, strict=True)
        ]
        return result(*taken)


class Part(Kernel[P, R]):
    """A function that only kernels call: it has no compiled form of its own, and Python calls it as it is written."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.python(*args, **kwargs)

    def _compile(self) -> Any:
        numba = _numba()
        compiler = importlib.import_module("app.ml.numerics.kernel_parts").PartCompiler
        own = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": compiler}
        return numba.njit(**self._options, **own)(self._bare())


def kernel(
    *signatures: str, writes: Sequence[str] = (), keep_gil: bool = False, ieee: bool = False, fused: bool = False
) -> Callable[[Callable[P, R]], Kernel[P, R]]:
    """A kernel of these types, in numba's notation. `writes`: names of the arrays it changes.

    ieee: a division by zero is infinite, or NaN; else it raises ZeroDivisionError, which is looked for every time.
    fused: a product and the sum it goes into are rounded once where the processor can, so the last bits depend on it.
    """

    def decorate(python: Callable[P, R]) -> Kernel[P, R]:
        own: dict[str, Any] = {"nogil": not keep_gil} | ({"error_model": "numpy"} if ieee else {})
        own |= {"fastmath": {"contract"}} if fused else {}
        made = Kernel(python, signatures, writes, own)
        _kernels.append(made)
        return made

    return decorate


def inner(python: Callable[P, R]) -> Kernel[P, R]:
    """A function that only kernels call: it becomes part of each of them."""
    return Part(python)


def reordered(python: Callable[P, R]) -> Kernel[P, R]:
    """An inner function whose sums are added in the quickest order, so the last bits depend on the processor."""
    return Part(python, options=INNER | {"fastmath": {"contract", "reassoc"}})


def seldom(python: Callable[P, R]) -> Kernel[P, R]:
    """An inner function that stays apart, for what is called rarely: the kernel compiles faster.

    A call takes some 100 ns, as an array is handed over as seven numbers.
    """
    return Part(python, options=SELDOM)


def apart(python: Callable[P, R]) -> Kernel[P, R]:
    """An inner function that is called, and makes no arrays: its caller keeps the processor's registers to itself."""
    return Part(python, options=APART)


def made() -> int:
    """Number of compiled kernels."""
    return sum(each.ready for each in _kernels)


def origins() -> Iterator[tuple[Path, str]]:
    """The file of each kernel of the modules imported so far, and its name with its digest."""
    for each in _kernels:
        function: Any = each.python
        yield Path(function.__code__.co_filename), f"{function.__qualname__}-{each.digest()}"


def load() -> Iterator[None]:
    """Read the kernels of the modules imported so far from disk, one with each step; compile what is not there."""
    for each in _kernels:
        _ = each.compiled
        yield


@contextmanager
def _alone(name: str) -> Iterator[None]:
    """Hold the lock of a kernel: one process compiles it, and those that wait read it from disk afterwards."""
    held = _lock_file(name)
    try:
        yield
    finally:
        if held is not None:
            held.close()


def _lock_file(name: str) -> TextIO | None:
    """The locked file, or an unlocked one after the longest wait; None where no file can be written."""
    with suppress(OSError):
        if (folder := cache_folder()) is not None:
            file = (folder / f"{name}.lock").open("w")
            until = time.monotonic() + COMPILING_SECONDS
            while not _locked(file.fileno()) and time.monotonic() < until:
                time.sleep(0.02)
            return file
    return None


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def cache_folder() -> Path | None:
    """A folder to keep compiled code in; None where nothing can be written.

    It is NUMBA_CACHE_DIR, or among the user's caches, or where temporary files go. Code is run from it: a folder that
    others own or may write to is not used.
    """
    for place in _places():
        with suppress(OSError):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            if _ours(place):
                return place
    with suppress(OSError):
        return _temporary()
    return None


@cache
def _temporary() -> Path:
    return Path(tempfile.mkdtemp(prefix="valiant-"))


def _places() -> Iterator[Path]:
    if given := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(given)
    with suppress(RuntimeError):  # a user without a home
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "valiant"
    with suppress(OSError):  # no place for temporary files either
        yield Path(tempfile.gettempdir()) / f"valiant-{os.getuid()}"


def parts_of(code: CodeType) -> Iterator[str]:
    """Parts of code that are the same in every process; code within it would show its address in memory."""
    plain = [each for each in code.co_consts if not isinstance(each, CodeType)]
    yield from (code.co_code.hex(), repr((plain, code.co_names, code.co_varnames)))
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from parts_of(each)


def digest_of(parts: Sequence[str]) -> str:
    """Sixteen characters that identify such parts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _ours(folder: Path) -> bool:
    status = folder.lstat()
    return status.st_uid == os.getuid() and not status.st_mode & 0o022 and os.access(folder, os.W_OK | os.X_OK)


def _numba() -> Any:
    fresh = "numba" not in sys.modules
    numba: Any = importlib.import_module("numba")
    if fresh:
        folder = cache_folder()
        numba.config.CACHE_DIR = "" if folder is None else str(folder)
    return numba
