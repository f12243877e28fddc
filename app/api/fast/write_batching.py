"""Batched writes of connections, sent when a turn of their event loop ends."""

import asyncio
from functools import lru_cache
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from app.api.fast.bounded_connection import LingeringTransport

MAX_WAIT_SECONDS = 1e-3
"""Seconds that a response waits for those to other requests that came with its own."""


class Turn:
    """Writes of connections in one turn of the event loop, sent together: to wake a reader takes 15 µs each time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: list[Gathering] = []
        self._since = 0.0

    def wrote(self, out: "Gathering", *, first: bool) -> None:
        """first: whether nothing of it was waiting."""
        now = perf_counter()
        if not self._waiting:
            self._since = now
            self._loop.call_soon(self._end)
        if first:
            self._waiting.append(out)
        if now - self._since > MAX_WAIT_SECONDS:
            self._end()

    def _end(self) -> None:
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            each.flush()


turn_of = lru_cache(maxsize=1)(Turn)
"""A process has one event loop."""


class Gathering:
    """A transport that sends what is written in one turn of the event loop as one write: head and body, mostly."""

    def __init__(self, transport: "asyncio.Transport | LingeringTransport", turn: Turn) -> None:
        self._transport, self._turn = transport, turn
        self._chunks: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, chunk: bytes) -> None:
        self._chunks.append(chunk)
        self._turn.wrote(self, first=len(self._chunks) == 1)

    def is_closing(self) -> bool:
        """Read with every response."""
        return self._transport.is_closing()

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def flush(self) -> None:
        chunks, self._chunks = self._chunks, []
        if chunks and not self._transport.is_closing():
            self._transport.writelines(chunks)
