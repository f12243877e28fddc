"""Threads of a fit: calls that release the interpreter's lock, at once where the process has cores to spare.

Results must not depend on the number of threads: work is cut by fixed sizes or by columns, and sums are exact or added
in a fixed order.
"""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Protocol, TypeVar

T = TypeVar("T")


class Threads(Protocol):
    """Threads of this process, with the caller's."""

    @property
    def threads(self) -> int:
        """Number of calls that would run at once now."""

    def at_once(self, calls: Sequence[Callable[[], T]], /) -> list[T]:
        """The result of each call, in their order. No two of them write the same."""


class OneThread:
    """`Threads` that do one call after the other."""

    threads = 1

    def at_once(self, calls: Sequence[Callable[[], T]], /) -> list[T]:
        return [call() for call in calls]


THREADS: ContextVar[Threads] = ContextVar("threads", default=OneThread())  # noqa: B039  it has no state
"""Those of the fit that runs in this context; threads that they start have none of their own."""


def count_threads() -> int:
    """Number of calls that `run_at_once` would run at once now."""
    return THREADS.get().threads


def run_at_once(calls: Sequence[Callable[[], T]]) -> list[T]:
    """The result of each call, in their order. No two of them write the same."""
    return THREADS.get().at_once(calls)
