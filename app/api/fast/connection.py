"""A connection of the API: it processes a request to a direct route where it arrives.

The usual path of a request, a parser that reports its parts, a task of the event loop that receives them and sends the
response in messages, costs more than a small prediction. Whatever is not quite plain takes that path: uvicorn's.
"""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from app.api.edge.middleware import Fields, Whole
from app.api.fast.bounded_connection import LIGHT_BYTES, BoundedConnection, LingeringTransport, beginning
from app.api.fast.head import END, MAX_HEAD_BYTES
from app.api.fast.head_cache import NO_HEAD, Found, HeadCache, PreparedRequest
from app.api.fast.route import Application
from app.api.fast.write_batching import Gathering, turn_of
from app.formats.bytes import Sent

PATIENCE = 1.0
"""Seconds after which a request of which no more came takes the usual path, which has clocks of its own."""
NO_HEADS = HeadCache(lambda _: None)
"""Those of any other application."""
READ, AHEAD = LIGHT_BYTES, 16
"""Bytes read at a time; how many times what came of a body there may be room for."""


@lru_cache(maxsize=1)
def _buffer_of(_loop: asyncio.AbstractEventLoop) -> bytearray:
    """The buffer into which all connections read: its contents are used before the next one reads."""
    return bytearray(READ)


@dataclass(slots=True)
class _Arriving:
    """A request that is not whole."""

    prepared: PreparedRequest
    head: bytes
    body: memoryview
    """Room for it: memory is taken for what came, not for what is announced."""
    came: int
    """Bytes of it."""
    seen: int
    """Bytes that had come by the last look."""
    clock: asyncio.TimerHandle

    def room(self) -> memoryview:
        """For what comes next."""
        if self.came == len(self.body):
            most, skew = max(READ, AHEAD * self.came), -self.prepared.lead % 8
            body = np.empty(min(self.prepared.size, most) + skew, np.uint8).data[skew:]
            body[: self.came] = self.body
            self.body = body
        return self.body[self.came :]


class Connection(BoundedConnection):
    """uvicorn's protocol, which receives only what is not processed here."""

    _arriving: _Arriving | None = None
    _responding: "asyncio.Task[None] | None" = None
    """The task that waits for a response."""
    _light = False
    """True if its request has few bytes."""
    _rest = b""
    """Bytes that came meanwhile."""
    _ending = False
    """True if that response is the last."""
    _recent = NO_HEAD
    """Head of the request before."""
    _used = False
    """True if anything was processed here since the clock of an idle connection was set."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._heads = self.app.heads if isinstance(self.app, Application) else NO_HEADS
        self._buffer = _buffer_of(self.loop)

    def wrap(self, transport: LingeringTransport) -> Gathering:
        return Gathering(transport, turn_of(self.loop))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._arriving is not None:
            self._arriving.clock.cancel()
        if self._responding is not None:
            self._responding.cancel()
            self._responding = None  # what it holds, and that is the body, holds this too, and would be freed late
        super().connection_lost(exc)

    def eof_received(self) -> bool | None:  # type: ignore[override]  # as asyncio's
        """A caller who sends no more may still read: the response to few bytes is sent, the queue is not waited in."""
        self.transport.flush()  # type: ignore[attr-defined]  # what is written already: the loop may close it next
        if self._responding is None or not self._light or not self._outgoing.can_write_eof():
            return super().eof_received()
        self._ending = True
        return True

    def has_unread_input(self) -> bool:
        return bool(self._rest) or super().has_unread_input()

    def shutdown(self) -> None:
        self._pass_on()  # and it is waited for
        if self._responding is not None:
            self._ending = True
        else:
            super().shutdown()

    def get_buffer(self, sizehint: int) -> memoryview | bytearray:  # noqa: ARG002  as asyncio's
        return self._buffer if self._arriving is None else self._arriving.room()

    def buffer_updated(self, nbytes: int) -> None:
        arriving = self._arriving
        if arriving is None:
            if self.ended:
                self.data_received(bytes(memoryview(self._buffer)[:nbytes]))
            else:
                self._read(self._buffer, nbytes)
            return
        arriving.came += nbytes
        if arriving.came == arriving.prepared.size:
            arriving.clock.cancel()
            self._arriving = None
            self._process(arriving.prepared, arriving.body)

    def timeout_keep_alive_handler(self) -> None:
        if self._used or self._arriving is not None or self._responding is not None:
            self._set_clock()
        else:
            super().timeout_keep_alive_handler()

    def _read(self, text: bytes | bytearray, stop: int) -> None:
        """Bytes that begin a request, or continue one that was passed to uvicorn; up to `stop`."""
        start, view = 0, memoryview(text)
        while start < stop:
            if self._responding is not None:
                self._rest += view[start:stop]
                self.flow.pause_reading()  # not before: of who is being read it is known that they are there
                return
            request = None
            if self._at_rest():
                request = self._recent.again(text, start, stop) or self._first(text, start, stop)
            if request is None:
                super().data_received(bytes(view[start:stop]))
                return
            end, prepared, fields = request
            if stop - end < prepared.size:
                clock, came, whole = self.loop.call_later(PATIENCE, self._look), stop - end, prepared.of(fields)
                self._arriving = _Arriving(whole, bytes(view[start:end]), view[end:stop], came, came, clock)
                self._arriving.room()  # others read to where it is now
                return
            start = end + prepared.size
            self._process(prepared, bytes(view[end:start]), fields)
            if self._ending:
                return

    def _first(self, text: bytes | bytearray, start: int, stop: int) -> Found | None:
        """A head that is not like the one before. None for what takes the usual path."""
        end = text.find(END, start, stop) + len(END)
        if not (len(END) < end - start <= MAX_HEAD_BYTES and text.startswith(b"POST ", start)):
            return None
        head = bytes(memoryview(text)[start:end])
        prepared = self._heads[head]
        if prepared is None:
            return None
        self._recent = self._heads.recent(head)
        return end, prepared, None

    def _at_rest(self) -> bool:
        """True if uvicorn has nothing in progress, and the other end reads what it is sent."""
        busy = self.cycle is not None and not self.cycle.response_complete
        return self._between and not (busy or self.flow.write_paused)

    def _look(self) -> None:
        """True if more came since the last look."""
        arriving = self._arriving
        if arriving is not None and arriving.seen < arriving.came:
            arriving.seen = arriving.came
            arriving.clock = self.loop.call_later(PATIENCE, self._look)
        else:
            self._pass_on()

    def _pass_on(self) -> None:
        """Pass what has arrived of a request to uvicorn."""
        arriving, self._arriving = self._arriving, None
        if arriving is not None:
            arriving.clock.cancel()
            super().data_received(arriving.head + arriving.body[: arriving.came])

    def _process(self, prepared: PreparedRequest, body: Sent, fields: Fields | None = None) -> None:
        response = prepared.process(body) if fields is None else prepared.process(body, fields)
        if isinstance(response, tuple):
            self._send(response)
            return
        self._light = prepared.size <= READ
        self._responding = task = self.loop.create_task(self._later(response))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _later(self, response: Awaitable[Whole]) -> None:
        result = await response
        self._responding = None
        if self.transport.is_closing():
            return
        self._send(result)
        if self._ending:
            return
        self.flow.resume_reading()
        waiting, self._rest = self._rest, b""
        self._read(waiting, len(waiting))

    def _send(self, response: Whole) -> None:
        self.send_whole(response)
        if beginning.last or self._ending:
            self._ending = True
            self.transport.close()
            return
        self._used = True
        if self.timeout_keep_alive_task is None:
            self._set_clock()

    def _set_clock(self) -> None:
        """Set the clock of an idle connection. It is not set anew with every response."""
        self._used = False
        self._set_idle_clock(self.timeout_keep_alive)


class Receiver(asyncio.BufferedProtocol):
    """Receiver of bytes for a `Connection`: those of a large body are written to their final place at once."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._connection = Connection(*args, **kwargs)
        self.get_buffer = self._connection.get_buffer  # type: ignore[method-assign]  # one call less with every read
        self.buffer_updated = self._connection.buffer_updated  # type: ignore[method-assign]  # as above

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        self._connection.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.connection_lost(exc)

    def eof_received(self) -> bool | None:
        return self._connection.eof_received()

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()
