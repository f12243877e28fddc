"""Kernels that are not on disk, in which order processes compile them, and how long that takes.

A process that compiles takes one kernel after the other that nobody else compiles; as many as there are processors do
so side by side. Whatever needs a kernel at once compiles it itself, or waits for the process that does.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

from app.ml.numerics.jit import Kernel, kernels
from app.ml.numerics.kernel_digest import codes_of
from app.ml.numerics.kernel_folders import trusted_folders
from app.ml.numerics.kernel_locks import is_wanted

AnyKernel = Kernel[..., Any]
SERVING = (
    "app.ml.preparation.compiled.columns",
    "app.ml.numerics.decoding.json_numbers",
    "app.ml.numerics.trees.compiled.numeric_traversal",
    "app.ml.numerics.trees.compiled.traversal",
    "app.ml.numerics.trees.compiled.linear_forms",
    "app.ml.numerics.neighbours.screening",
    "app.ml.numerics.neighbours.compiled.distances",
    "app.ml.numerics.neighbours.compiled.tiles",
    "app.ml.numerics.density.compiled.mixture",
    "app.ml.numerics.support_vectors.compiled.kernel_values",
    "app.ml.numerics.kernel_functions.compiled.radial",
    "app.ml.numerics.kernel_functions.compiled.squared_differences",
    "app.ml.numerics.networks.compiled.one_row",
    "app.ml.numerics.maps.compiled.item_pulls",
)
"""Modules whose kernels predictions use: they come first."""
KERNEL_SECONDS, BYTE_SECONDS = 0.2, 0.35e-3
"""Time to compile a kernel, and each byte of Python's code of all that is part of it, by an idle processor of 2024."""


class Compiling(NamedTuple):
    """State of compiling: the kernels that remain."""

    done: int
    """Number of kernels of the present family that are on disk."""
    of: int
    """Number of kernels of that family."""
    family: str
    seconds: float
    """Time that all that remains will take."""

    def __str__(self) -> str:
        number = min(self.done + 1, self.of)
        return f"compiling (once on this machine) {number}/{self.of} {self.family}, about {self.seconds:.0f} s"


def is_serving(kernel: AnyKernel) -> bool:
    """True if predictions may need it."""
    return kernel.__module__ in SERVING


def missing() -> list[AnyKernel]:
    """Kernels of the modules imported so far that are not on disk, in the order in which to compile them.

    Those of families that a process waits for, those that serve, then family by family, the quickest first.
    """
    folders, efforts = trusted_folders(), dict[str, float]()
    left = [kernel for kernel in kernels() if kernel.folder_among(folders) is None]
    for kernel in left:
        efforts[kernel.family] = efforts.get(kernel.family, 0.0) + seconds_of(kernel)
    wanted = {family for family in efforts if any(is_wanted(folder, family) for folder in folders)}

    def turn(kernel: AnyKernel) -> tuple[object, ...]:
        family = kernel.family
        return family not in wanted, not is_serving(kernel), efforts[family], family, seconds_of(kernel)

    return sorted(left, key=turn)


@cache
def seconds_of(kernel: AnyKernel) -> float:
    """Time to compile a kernel, roughly."""
    return KERNEL_SECONDS + BYTE_SECONDS * _size(kernel)


def _size(kernel: AnyKernel) -> int:
    function: Any = kernel.python
    return sum(len(code.co_code) for code in codes_of(function.__code__)) + sum(map(_size, kernel.parts()))


def describe(left: Sequence[AnyKernel], *, pace: float = 1.0) -> Compiling | None:
    """State of compiling. pace: seconds that one of `seconds_of` takes here. None: nothing."""
    if not left:
        return None
    family = left[0].family
    total = sum(kernel.family == family for kernel in kernels())
    done = total - sum(kernel.family == family for kernel in left)
    return Compiling(done, total, family, pace * sum(map(seconds_of, left)))


def compile_missing(*, serving: bool = False) -> None:
    """Compile in this process what is not on disk and what no other process compiles. serving: that alone."""
    while _compile_one(kernel for kernel in missing() if is_serving(kernel) or not serving):
        pass


def _compile_one(left: Iterable[AnyKernel]) -> bool:
    return any(kernel.try_to_compile() for kernel in left if not kernel.ready)


def load_from_disk() -> Iterator[None]:
    """Read the kernels that are on disk and not in this process yet, one with each step."""
    for kernel in kernels():
        if not kernel.ready and kernel.read():
            yield


def read_companions() -> None:
    """Read from disk the kernels beside those that serve already: other numbers of rows of a model call them."""
    modules = {kernel.__module__ for kernel in kernels() if kernel.ready and is_serving(kernel)}
    for kernel in kernels():
        if kernel.__module__ in modules:
            kernel.read()


def all_loaded() -> bool:
    """True if no call of a kernel waits."""
    return all(kernel.ready for kernel in kernels())


@cache
def kernels_reached_from(name: str) -> frozenset[AnyKernel]:
    """Kernels of a module and of all that it imports from the core, which may be more than one use of it needs."""
    names, queue = {name}, [name]
    while queue:
        imported = {_origin(value) for value in vars(sys.modules[queue.pop()]).values()} - names
        queue += sorted(origin for origin in imported if origin.startswith(("app.ml.numerics.", "app.ml.preparation.")))
        names |= imported
    return frozenset(kernel for kernel in kernels() if kernel.__module__ in names)


def _origin(value: object) -> str:
    """Name of the module that a global of another one comes from."""
    name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return name if isinstance(name, str) else ""
