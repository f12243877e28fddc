"""Admission control of predictions. A request that cannot be served soon is refused at once; the queue is bounded."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from types import TracebackType
from typing import Self, TypeVar

from app.base.errors import DeadlineExceeded, Overloaded
from app.base.settings import Settings

T = TypeVar("T")
RETRY_SECONDS = "1"
MAX_WAIT_SECONDS = 5.0
"""Work of small predictions that may be ahead of another one, for each thread."""


class Admission:
    """Counts of one event loop: the predictions in flight, and those among them that go to threads.

    Large ones may take any time and memory: so many may wait. Small ones, of models that take long for a row, hold
    little: they wait while their turn comes soon, by measured times. The threads are its own. What else
    needs one, a health check above all, never waits behind a prediction.
    """

    def __init__(self, settings: Settings) -> None:
        self._places = settings.max_predictions
        self._large_places = settings.predict_threads + settings.max_waiting_predictions
        self._turns = asyncio.Semaphore(settings.predict_threads)
        self._threads = ThreadPoolExecutor(settings.predict_threads, thread_name_prefix="predictions")
        self._wait_seconds = settings.predict_threads * MAX_WAIT_SECONDS
        self.inside = self.large = 0
        self.small_seconds = 0.0
        """Time that the small ones take which wait or run."""

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

    async def in_turn(self, call: Callable[[], T], begin: Callable[[], None], seconds: float | None) -> T:
        """`call` in a thread, when one is free. A caller who is gone leaves the queue, or the thread to its end.

        seconds: the time that a small one takes; None: it is a large one.
        """
        large = int(seconds is None)
        if large and self.large >= self._large_places:
            raise Overloaded("Too many large predictions are waiting.", headers={"Retry-After": RETRY_SECONDS})
        if not large and self.small_seconds >= self._wait_seconds:
            raise Overloaded("Too many predictions of slow models are waiting.", headers={"Retry-After": RETRY_SECONDS})
        self._count(large, seconds or 0.0)
        try:
            await self._turns.acquire()
        except BaseException:
            self._count(-large, -(seconds or 0.0))
            raise
        begin()
        running = asyncio.get_running_loop().run_in_executor(self._threads, copy_context().run, call)
        running.add_done_callback(lambda _: self._count(-large, -(seconds or 0.0)))
        running.add_done_callback(self._done)
        return await asyncio.shield(running)

    def _count(self, large: int, seconds: float) -> None:
        self.large += large
        self.small_seconds = max(0.0, self.small_seconds + seconds)  # sums that were rounded end at 0

    def _done(self, running: "asyncio.Future[T]") -> None:
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

    async def run(self, call: Callable[[], T], *, seconds: float | None = None) -> T:
        """`call` in a thread when its turn comes. seconds: the time that a small one takes; None: it is a large one."""
        return await self._admission.in_turn(call, self.begin, seconds)

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
