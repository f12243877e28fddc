"""The class of processors that kernels are compiled for: those of a class share compiled code, and round alike.

VALIANT_PROCESSOR is `auto`, the highest class whose instructions this processor has; `native`, all that it has; or the
name of a class or of a processor, as LLVM writes it.
"""

import importlib
import os
import platform
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from app.base.errors import StartFailed

AUTO, NATIVE, GENERIC = "auto", "native", "generic"
X86_CLASSES: Mapping[str, frozenset[str]] = {
    "x86-64-v4": frozenset({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}),
    "x86-64-v3": frozenset({"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"}),
    "x86-64-v2": frozenset({"cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3"}),
    "x86-64": frozenset(),
}
"""Instructions that each class has beyond those of the classes below it."""
CPUINFO = Path("/proc/cpuinfo")
LLVM_NAMES = {"abm": "lzcnt", "bmi1": "bmi", "lahf_lm": "sahf", "pni": "sse3"}
"""Instructions that Linux names differently."""
SHIPPED_CLASSES = {"x86_64": ("x86-64-v3", "x86-64-v4"), "aarch64": (GENERIC,)}
"""Classes whose compiled code an image carries, by machine."""


class Processor(NamedTuple):
    """A processor that LLVM compiles for."""

    name: str
    features: str
    """Further instructions, in LLVM's notation; those of a class are in its name."""


@cache
def processor() -> Processor:
    """The processor that VALIANT_PROCESSOR names."""
    setting = os.environ.get("VALIANT_PROCESSOR") or AUTO
    if setting == NATIVE:
        binding: Any = importlib.import_module("llvmlite.binding")
        return Processor(binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten())
    return Processor(highest_class() if setting == AUTO else setting, "")


def highest_class() -> str:
    """The highest class whose instructions this processor has."""
    if platform.machine() not in {"x86_64", "AMD64"}:
        return GENERIC
    return next(name for name in X86_CLASSES if not missing_instructions(name))


def missing_instructions(name: str) -> list[str]:
    """Instructions of a class of x86 that this processor lacks."""
    classes = list(X86_CLASSES)
    needed = frozenset().union(*(X86_CLASSES[below] for below in classes[classes.index(name) :]))
    return sorted(needed - _instructions())


def _instructions() -> frozenset[str]:
    """Instructions that this processor has, as LLVM names them: on Linux without LLVM, which takes 40 MB."""
    with suppress(OSError):
        flags = re.search(r"^flags\s*: (.*)$", CPUINFO.read_text(), re.MULTILINE)
        if flags:
            return frozenset(LLVM_NAMES.get(flag, flag.replace("_", ".")) for flag in flags[1].split())
    binding: Any = importlib.import_module("llvmlite.binding")
    return frozenset(name for name, present in binding.get_host_cpu_features().items() if present)


def demand_processor() -> None:
    """Raises StartFailed if VALIANT_PROCESSOR names a class whose instructions this processor lacks."""
    setting = os.environ.get("VALIANT_PROCESSOR") or AUTO
    if setting in X86_CLASSES and (missing := missing_instructions(setting)):
        raise StartFailed(
            f"VALIANT_PROCESSOR: this processor is none of {setting}, it lacks {', '.join(missing)}. Set `auto`, or "
            f"{highest_class()}, the highest class it is of."
        )
