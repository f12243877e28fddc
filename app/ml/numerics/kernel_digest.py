"""Digest of what a compiled kernel depends on: its code, and the values that the code names."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType, EllipsisType, ModuleType
from typing import Any, Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class HasDigest(Protocol):
    """A value with a digest of its own, as a kernel has."""

    def digest(self) -> str:
        """The same in every process."""


def parts_of(code: CodeType) -> Iterator[str]:
    """Parts of code that are the same in every process; code within it would show its address in memory."""
    for each in codes_of(code):
        plain = [constant for constant in each.co_consts if not isinstance(constant, CodeType)]
        yield from (each.co_code.hex(), written((plain, each.co_names, each.co_varnames)))


def codes_of(code: CodeType) -> Iterator[CodeType]:
    """The code, and all that is within it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from codes_of(each)


def written(value: Any) -> str:
    """A value that code depends on, as text that is the same in every process. Raises TypeError for any other."""
    match value:
        case HasDigest():
            text = value.digest()
        case None | bool() | int() | float() | complex() | str() | bytes() | EllipsisType():
            text = repr(value)
        case tuple() | list():
            text = f"({','.join(map(written, value))})"
        case set() | frozenset():
            text = f"{{{','.join(sorted(map(written, value)))}}}"
        case Mapping():
            text = f"{{{','.join(f'{written(key)}:{written(value[key])}' for key in sorted(value))}}}"
        case np.ndarray() | np.generic():
            text = f"{value.dtype.str}{value.shape}{hashlib.sha256(value.tobytes()).hexdigest()}"
        case type():
            text = f"{value.__module__}.{value.__qualname__}{getattr(value, '_fields', '')}"
        case ModuleType() if not value.__name__.startswith("app"):
            text = value.__name__
        case _:
            raise TypeError(f"Compiled code cannot depend on {value!r}: no digest shows when it changes.")
    return text


def digest_of(parts: Sequence[str]) -> str:
    """Sixteen characters that identify such parts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
