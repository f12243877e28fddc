"""A connection of the API: a question to a direct route is answered where it arrives.

The usual way of a request, a parser that tells its parts, a task of the event loop that hears of them and tells the
answer in messages, costs more than a small prediction. Whatever is not quite plain takes that way, which is uvicorn's.
"""

import asyncio
import sys
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from app.api.edge.body import Sent
from app.api.edge.middleware import STAMPS, Whole, line
from app.api.edge.problems import AddressTooLong, HeadTooLarge, MalformedRequest
from app.api.fast.head import END, LAST, LONGEST
from app.api.fast.route import Application, Question
from app.api.fast.write_batching import Gathering, turn_of
from app.errors import ValiantError
from app.settings import KiB

PATIENCE = 1.0
"""Seconds after which a question of which no more came takes the usual way, which has clocks of its own."""
LONGEST_ADDRESS, LONGEST_HEAD = 64 * KiB - 1, 256 * KiB
"""Bytes of an address, and of all header fields of a request."""
CLOSE = {"Connection": "close"}
READ, AHEAD = 256 * KiB, 16
"""Bytes read at a time; how many times what came of a body there may be room for."""


@lru_cache(maxsize=1)
def _buffer_of(_loop: asyncio.AbstractEventLoop) -> bytearray:
    """Where all connections read to: what is there is used before the next one reads."""
    return bytearray(READ)


@dataclass(slots=True)
class _Arriving:
    """A question that is not whole."""

    question: Question
    head: bytes
    body: memoryview
    """Room for it: memory is taken for what came, not for what is said to come."""
    came: int
    """Bytes of it."""
    seen: int
    """What came until the last look."""
    clock: asyncio.TimerHandle

    def room(self) -> memoryview:
        """For what comes next."""
        if self.came == len(self.body):
            most, skew = max(READ, AHEAD * self.came), -self.question.lead % 8
            body = np.empty(min(self.question.size, most) + skew, np.uint8).data[skew:]
            body[: self.came] = self.body
            self.body = body
        return self.body[self.came :]


class Connection(HttpToolsProtocol):
    """uvicorn's, which hears only of what is not answered here."""

    _between = True
    """Whether uvicorn has heard of whole questions only."""
    _arriving: _Arriving | None = None
    _answering: "asyncio.Task[None] | None" = None
    """What waits for an answer."""
    _light = False
    """Whether its question is of few bytes."""
    _rest = b""
    """What came meanwhile."""
    _ending = False
    """Whether that answer is the last."""
    _head_size = 0
    """Bytes of the header fields that uvicorn has parsed."""
    _asked = False
    """Whether anything was answered here since the clock of an idle connection was set."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._question = self.app.question if isinstance(self.app, Application) else _none
        self._buffer = _buffer_of(self.loop)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        out = Gathering(transport, turn_of(self.loop))
        super().connection_made(out)  # type: ignore[arg-type]  # all that is asked of a transport

    def connection_lost(self, exc: Exception | None) -> None:
        if self._arriving is not None:
            self._arriving.clock.cancel()
        if self._answering is not None:
            self._answering.cancel()
            self._answering = None  # what it holds, and that is the body, holds this too, and would be freed late
        super().connection_lost(exc)

    def eof_received(self) -> bool | None:  # type: ignore[override]  # as asyncio's
        """A caller who asks no more may still read: an answer to few bytes is sent, the queue is not waited in."""
        if self._answering is None or not self._light:
            return super().eof_received()
        self._ending = True
        return True

    def end(self) -> None:
        """Close the connection with its next response. uvicorn adds its header, and so does `_Beginning`."""
        if self.cycle is not None and not self.cycle.response_started:
            self.cycle.keep_alive = False

    def shutdown(self) -> None:
        self._tell()  # and it is waited for
        if self._answering is not None:
            self._ending = True
        else:
            super().shutdown()

    def get_buffer(self, sizehint: int) -> memoryview | bytearray:  # noqa: ARG002  as asyncio's
        return self._buffer if self._arriving is None else self._arriving.room()

    def buffer_updated(self, nbytes: int) -> None:
        arriving = self._arriving
        if arriving is None:
            self._read(self._buffer, nbytes)
            return
        arriving.came += nbytes
        if arriving.came == arriving.question.size:
            arriving.clock.cancel()
            self._arriving = None
            self._answer(arriving.question, arriving.body)

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > LONGEST_ADDRESS:
            raise AddressTooLong(f"It may have {LONGEST_ADDRESS} bytes.", headers=CLOSE)

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._head_size += len(name) + len(value)
        if self._head_size > LONGEST_HEAD:
            raise HeadTooLarge(f"Together they may have {LONGEST_HEAD} bytes.", headers=CLOSE)

    def send_400_response(self, msg: str) -> None:
        """The parser has failed, or a limit of ours was passed while it read."""
        if not isinstance(self.app, Application):
            super().send_400_response(msg)
            return
        failed = sys.exc_info()[1]
        cause = failed and failed.__context__
        error = cause if isinstance(cause, ValiantError) else MalformedRequest(headers=CLOSE)
        self._send(self.app.refuse(error))
        self.transport.close()

    def on_message_begin(self) -> None:
        self._between = False
        self._head_size = 0
        super().on_message_begin()

    def on_message_complete(self) -> None:
        self._between = True
        super().on_message_complete()

    def timeout_keep_alive_handler(self) -> None:
        if self._asked or self._arriving is not None or self._answering is not None:
            self._set_clock()
        else:
            super().timeout_keep_alive_handler()

    def _read(self, text: bytes | bytearray, stop: int) -> None:
        """What begins where a question may begin, or goes on with what was told to uvicorn; up to `stop`."""
        start, view = 0, memoryview(text)
        while start < stop:
            if self._answering is not None:
                self._rest += view[start:stop]
                self.flow.pause_reading()  # not before: of who is being read it is known that they are there
                return
            end = text.find(END, start, stop) + len(END)
            plain = len(END) < end - start <= LONGEST and text.startswith(b"POST ", start) and self._at_rest()
            question = self._question(bytes(view[start:end])) if plain else None
            if question is None:
                super().data_received(bytes(view[start:stop]))
                return
            if stop - end < question.size:
                clock, came = self.loop.call_later(PATIENCE, self._look), stop - end
                self._arriving = _Arriving(question, bytes(view[start:end]), view[end:stop], came, came, clock)
                self._arriving.room()  # others read to where it is now
                return
            start = end + question.size
            self._answer(question, bytes(view[end:start]))
            if self._ending:
                return

    def _at_rest(self) -> bool:
        """Whether uvicorn has nothing under way, and the other end reads what it is sent."""
        busy = self.cycle is not None and not self.cycle.response_complete
        return self._between and not (busy or self.flow.write_paused)

    def _look(self) -> None:
        """Whether more came since the last look."""
        arriving = self._arriving
        if arriving is not None and arriving.seen < arriving.came:
            arriving.seen = arriving.came
            arriving.clock = self.loop.call_later(PATIENCE, self._look)
        else:
            self._tell()

    def _tell(self) -> None:
        """What has arrived of a question reaches uvicorn."""
        arriving, self._arriving = self._arriving, None
        if arriving is not None:
            arriving.clock.cancel()
            super().data_received(arriving.head + arriving.body[: arriving.came])

    def _answer(self, question: Question, body: Sent) -> None:
        answer = question.answer(body)
        if isinstance(answer, tuple):
            self._send(answer)
            return
        self._light = question.size <= READ
        self._answering = task = self.loop.create_task(self._later(answer))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _later(self, answer: Awaitable[Whole]) -> None:
        result = await answer
        self._answering = None
        if self.transport.is_closing():
            return
        self._send(result)
        if self._ending:
            return
        self.flow.resume_reading()
        rest, self._rest = self._rest, b""
        self._read(rest, len(rest))

    def _send(self, answer: Whole) -> None:
        status, text = answer
        self.transport.write(b"%s%s%s" % (STATUS_LINE[status], _beginning(self.server_state.default_headers), text))
        self.server_state.total_requests += 1
        if _beginning.last or self._ending:
            self._ending = True
            self.transport.close()
            return
        self._asked = True
        if self.timeout_keep_alive_task is None:
            self._set_clock()

    def _set_clock(self) -> None:
        """Of an idle connection. It is not set anew with every answer: it finds one or two of its times idle."""
        self._asked = False
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)


class Receiver(asyncio.BufferedProtocol):
    """Where bytes come in, for a `Connection`: those of a large body are put where they shall be, and nowhere else."""

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


def _none(_head: bytes) -> None:
    """What another application is asked here."""


class _Beginning:
    """With uvicorn's own headers: the time, the same for a second, and those of every answer of ours."""

    def __init__(self) -> None:
        self._headers: Sequence[tuple[bytes, bytes]] = ()
        self._text = b""
        self.last = False
        """Whether these headers end the connection."""

    def __call__(self, headers: Sequence[tuple[bytes, bytes]]) -> bytes:
        if headers is not self._headers:
            self._headers = headers
            self.last = LAST in headers
            self._text = b"".join(map(line, (*headers, *STAMPS)))
        return self._text


_beginning = _Beginning()
