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

numba is imported with the first call and not before: it takes 65 MB. What was compiled is kept on disk, in the folders
of `kernel_folders`, so that it is compiled once for an installation, or for a machine and version.
"""

import importlib
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import cache, cached_property
from pathlib import Path
from types import FunctionType
from typing import Any, Generic, ParamSpec, TypeVar

from app.ml.numerics.kernel_digest import codes_of, digest_of, parts_of, written
from app.ml.numerics.kernel_folders import holds_kernel, kernel_files, tagged_folder, trusted_folders
from app.ml.numerics.kernel_locks import compiling_alone, lock_file, try_lock, wanted_file
from app.ml.numerics.processor import processor

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


def _ignore(_kernel: "Kernel[..., Any]") -> None:
    """Nobody is interested in what is compiled."""


on_compiling: Callable[["Kernel[..., Any]"], None] = _ignore
"""Called with a kernel before it is compiled, and again and again while another process compiles it."""
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
        self._locked = False
        """True while this process holds its lock on disk."""
        self.lean: Callable[P, R] = self._first
        """The same, for arguments of exactly the types of the only signature: nothing makes sure of it."""
        self.__doc__, self.__name__, self.__module__ = python.__doc__, python.__name__, python.__module__

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        result: R = (self._compiled or self.compiled)(*args, **kwargs)
        return result

    @property
    def ready(self) -> bool:
        """True if a call begins at once."""
        return self._compiled is not None

    @property
    def compiled(self) -> Any:
        """The dispatcher that numba makes; compiled, or read from disk, the first time."""
        with _lock:
            if self._compiled is None:
                self._take(self._compile())
        return self._compiled

    def read(self) -> bool:
        """Read the compiled form from disk if it is there, and wait for nothing. True if it is ready."""
        folder = None if self.ready else self.on_disk
        if folder is not None:
            with _lock, suppress(Exception):  # its files are a hint: numba fails in many ways where they are damaged
                self._take(self._dispatcher(folder))
        return self.ready

    def _take(self, dispatcher: Any) -> None:
        forms = list(dispatcher.overloads.values()) if len(self._signatures) == 1 else []
        self.lean = forms[0].entry_point if forms else dispatcher
        self._compiled = dispatcher

    def _first(self, *args: P.args, **kwargs: P.kwargs) -> R:
        _ = self.compiled
        return self.lean(*args, **kwargs)

    @property
    def family(self) -> str:
        """Name of the package of numerics that it is part of."""
        return self.__module__.removeprefix("app.ml.numerics.").partition(".")[0]

    @property
    def on_disk(self) -> Path | None:
        """The folder that its compiled form is read from; None where it has to be compiled."""
        return self.folder_among(trusted_folders())

    def folder_among(self, folders: Sequence[Path]) -> Path | None:
        """The first folder that has its compiled form."""
        return next((folder for folder in folders if holds_kernel(folder, self.file_name, len(self._signatures))), None)

    def try_to_compile(self) -> bool:
        """Compile it, or read it from disk. False if another process compiles it at present."""
        with lock_file(self.lock_path(tagged_folder())) as file:
            if file is None or try_lock(file.fileno()):
                self._locked = True
                _ = self.compiled
                self._locked = False
                return True
        return False

    def want(self) -> None:
        """Have processes that compile all kernels do those of this family first."""
        if (folder := tagged_folder()) is not None:
            with suppress(OSError):
                wanted_file(folder, self.family).touch()

    def lock_path(self, folder: Path | None) -> Path | None:
        return None if folder is None else folder / f"{self.file_name}.lock"

    @cached_property
    def file_name(self) -> str:
        """Name of its files on disk, as numba makes it from the names of module and function."""
        function: Any = self.python
        name = f"{function.__qualname__}-{self.digest()}".replace("<", "").replace(">", "")
        version = f"py{sys.version_info[0]}{sys.version_info[1]}{sys.abiflags}"
        return f"{Path(function.__code__.co_filename).stem}.{name}-0.{version}"

    def _compile(self) -> Any:
        """Read from disk, or compiled by this process, or read after another process has compiled it."""
        if self.read():
            return self._compiled
        folder = tagged_folder()
        with nullcontext() if self._locked else compiling_alone(self.lock_path(folder), lambda: on_compiling(self)):
            return self._dispatcher(folder) if folder is None else self._compiled_into(folder)

    def _compiled_into(self, folder: Path) -> Any:
        numba = _numba()
        for _ in range(2):
            try:
                return self._dispatcher(folder)
            except numba.core.errors.NumbaError:  # the code itself is wrong
                raise
            except Exception:  # noqa: BLE001 - damaged files, a full disk
                for file in kernel_files(folder, self.file_name, len(self._signatures)):
                    with suppress(OSError):
                        file.unlink()
        return self._dispatcher(None)

    def _dispatcher(self, folder: Path | None) -> Any:
        """The dispatcher that numba makes: read from a folder or compiled and written to it; None: compiled alone."""
        numba = _numba()
        bare: Any = self._bare()
        bare.kernel_folder = folder
        types = [self._types(numba, signature) for signature in self._signatures]
        return numba.njit(types, cache=folder is not None, **self._options)(bare)

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

    def parts(self) -> Iterator["Kernel[..., Any]"]:
        """Functions and kernels that it calls."""
        return (value for _, value in self._named() if isinstance(value, Kernel))

    def _named(self) -> Iterator[tuple[str, Any]]:
        """The globals that the function names."""
        function: Any = self.python
        names = dict.fromkeys(name for code in codes_of(function.__code__) for name in code.co_names)
        for name in names:
            if name in function.__globals__:
                yield name, function.__globals__[name]

    def digest(self) -> str:
        """Digest of all that the compiled form depends on: code, types, constants, functions that it calls."""
        function: Any = self.python
        parts = [*parts_of(function.__code__), *map(written, (self._options, self._signatures, self._writes))]
        return digest_of([*parts, *(f"{name}={written(value)}" for name, value in self._named())])

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
        options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": compiler}
        return numba.njit(**self._options, **options)(self._bare())


def kernel(
    *signatures: str, writes: Sequence[str] = (), keep_gil: bool = False, ieee: bool = False, fused: bool = False
) -> Callable[[Callable[P, R]], Kernel[P, R]]:
    """A kernel of these types, in numba's notation. `writes`: names of the arrays it changes.

    ieee: a division by zero is infinite, or NaN; else it raises ZeroDivisionError, which is looked for every time.
    fused: a product and the sum it goes into are rounded once where the processor can, so the last bits depend on it.
    """

    def decorate(python: Callable[P, R]) -> Kernel[P, R]:
        options: dict[str, Any] = {"nogil": not keep_gil} | ({"error_model": "numpy"} if ieee else {})
        options |= {"fastmath": {"contract"}} if fused else {}
        made = Kernel(python, signatures, writes, options)
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


def not_inlined(python: Callable[P, R]) -> Kernel[P, R]:
    """An inner function that is called, and makes no arrays: its caller keeps the processor's registers to itself."""
    return Part(python, options=APART)


def made() -> int:
    """Number of compiled kernels."""
    return sum(each.ready for each in _kernels)


def compilations() -> int:
    """Number of kernels that this process has compiled, rather than read from disk."""
    return sum(any(each.compiled.stats.cache_misses.values()) for each in _kernels if each.ready)


def kernels() -> Sequence["Kernel[..., Any]"]:
    """Kernels of the modules imported so far."""
    return tuple(_kernels)


@cache
def _numba() -> Any:
    """numba, compiling for `processor` and keeping kernels where `KernelLocator` has them.

    By the environment, which it reads anew whenever that has changed.
    """
    name, features = processor()
    os.environ |= {
        "NUMBA_CPU_NAME": name,
        "NUMBA_CPU_FEATURES": features,
        "NUMBA_CACHE_LOCATOR_CLASSES": "app.ml.numerics.kernel_cache.KernelLocator",
    }
    numba: Any = importlib.import_module("numba")
    numba.config.reload_config()
    return numba
