"""Admission control of predictions. A request that cannot be served soon is refused at once; the queue is bounded."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from types import TracebackType
from typing import Self, TypeVar

from app.errors import DeadlineExceeded, Overloaded
from app.settings import Settings

T = TypeVar("T")
RETRY_SECONDS = "1"


class Admission:
    """Counts of one event loop: the predictions in flight, and the large ones among them, which go to threads.

    The threads are its own. What else needs one, a health check above all, never waits behind a prediction.
    """

    def __init__(self, settings: Settings) -> None:
        self._places = settings.max_predictions
        self._large_places = settings.predict_threads + settings.max_waiting_predictions
        self._turns = asyncio.Semaphore(settings.predict_threads)
        self._threads = ThreadPoolExecutor(settings.predict_threads, thread_name_prefix="predictions")
        self.inside = self.large = 0

    def enter(self, seconds: float | None = None) -> "Place":
        """`async with admission.enter(seconds) as place:` around one prediction, which must begin in `seconds`.

        Raises Overloaded at once, and DeadlineExceeded as soon as the time is up.
        """
        return Place(self, seconds)

    def check(self) -> None:
        """For a prediction that begins and ends now. Raises Overloaded."""
        if self.inside >= self._places:
            raise Overloaded(headers={"Retry-After": RETRY_SECONDS})

    def take(self) -> None:
        self.check()
        self.inside += 1

    async def in_turn(self, call: Callable[[], T], begin: Callable[[], None]) -> T:
        """`call` in a thread, when one is free. A caller who is gone leaves the queue, or the thread to its end."""
        if self.large >= self._large_places:
            raise Overloaded("Too many large predictions are waiting.", headers={"Retry-After": RETRY_SECONDS})
        self.large += 1
        try:
            await self._turns.acquire()
        except BaseException:
            self.large -= 1
            raise
        begin()
        running = asyncio.get_running_loop().run_in_executor(self._threads, copy_context().run, call)
        running.add_done_callback(self._done)
        return await asyncio.shield(running)

    def _done(self, running: "asyncio.Future[T]") -> None:
        self.large -= 1
        self._turns.release()
        if not running.cancelled():
            running.exception()  # looked at, though its caller may be gone

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


class Place:
    """One prediction in flight. Until it begins it may wait, for a model or a thread, and its deadline counts."""

    __slots__ = ("_admission", "_deadline")

    def __init__(self, admission: Admission, seconds: float | None) -> None:
        self._admission = admission
        self._deadline = (
            None if seconds is None else asyncio.timeout(seconds)
        )  # a timer only for a caller who sends one

    async def __aenter__(self) -> Self:
        self._admission.take()
        if self._deadline is not None:
            await self._deadline.__aenter__()
        return self

    async def run(self, call: Callable[[], T], *, large: bool) -> T:
        """`call` here and now, or, if it is large, in a thread when its turn comes."""
        if large:
            return await self._admission.in_turn(call, self.begin)
        self.begin()
        return call()

    def begin(self) -> None:
        """From here on the deadline does not count."""
        if self._deadline is not None:
            self._deadline.reschedule(None)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._admission.inside -= 1
        if self._deadline is not None:
            try:
                await self._deadline.__aexit__(kind, error, trace)
            except TimeoutError:
                raise DeadlineExceeded from None
