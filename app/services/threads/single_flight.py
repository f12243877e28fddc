"""Single flight: calls that many make at once run once."""

import asyncio
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class SingleFlight(Generic[K, T]):
    """Calls in a few threads, one per key at a time. Callers of a key in flight share its outcome.

    A call runs in the context of its first caller, and so in their project: a key holds it where that matters.

    The number of threads is also the bound on this process's database calls at once.
    """

    def __init__(self, threads: int, name: str) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._lock = Lock()
        self._under_way: dict[K, Future[T]] = {}

    def join(self, key: K, call: Callable[[], T]) -> Future[T]:
        """The outcome of `call`, or of an earlier one for this key that is not finished. Never blocks."""
        with self._lock:
            future = self._under_way.get(key)
            if future is None:
                future = self._under_way[key] = self._threads.submit(copy_context().run, self._fly, key, call)
            return future

    def _fly(self, key: K, call: Callable[[], T]) -> T:
        try:
            return call()
        finally:
            with self._lock:
                del self._under_way[key]


async def within(flight: Future[T], seconds: float) -> bool:
    """True if a flight that others share lands in time. A caller who hangs up does not call it back."""
    landing = asyncio.wrap_future(flight)
    landing.add_done_callback(lambda done: done.cancelled() or done.exception())
    await asyncio.wait({landing}, timeout=seconds)
    return flight.done()
