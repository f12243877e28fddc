"""Tasks that end when their time is up, whatever they do."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

T = TypeVar("T")


class Timed(NamedTuple, Generic[T]):
    """The outcome of a task with a limit on its time."""

    result: T | None
    """None: it was not begun, or its time was up, or its process died."""
    seconds: float
    """Time that it took."""
    begun: bool = True
    late: bool = False
    """True if its time was up."""


class EachWithin(Protocol):
    def __call__(
        self, kind: type[T], tasks: Sequence[Callable[[], T]], seconds: Callable[[int], float], /
    ) -> Iterator[Timed[T]]:
        """The outcome of each task, in their order, however many are done at once.

        kind: as of `Each`. seconds: maps the place of a task, when it is about to begin, to the time that it may take;
        with none it does not begin.
        """


def in_turn_within(
    _kind: type[T], tasks: Sequence[Callable[[], T]], seconds: Callable[[int], float]
) -> Iterator[Timed[T]]:
    """An `EachWithin` that does one after the other in this process, and cannot end one that it has begun."""
    for place, task in enumerate(tasks):
        if not seconds(place) > 0:
            yield Timed(None, 0.0, begun=False)
            continue
        begun = time.monotonic()
        result = task()
        yield Timed(result, time.monotonic() - begun)
