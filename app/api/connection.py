"""A connection of the API: a question to a direct route is answered where it arrives.

The usual way of a request, a parser that tells its parts, a task of the event loop that hears of them and tells the
answer in messages, costs more than a small prediction. Whatever is not quite plain takes that way, which is uvicorn's.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from time import perf_counter
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from app.api.arriving import Sent
from app.api.direct import Application, Question
from app.api.heads import END, LONGEST
from app.api.middleware import STAMPS, Whole, line

PATIENCE = 1.0
"""Seconds to wait for more of a question, before it takes the usual way, which has clocks of its own."""
LONGEST_TURN = 250e-6
"""Seconds that an answer waits for those to other questions that came with its own."""


@dataclass(slots=True)
class _Arriving:
    """A question that is not whole."""

    question: Question
    head: bytes
    body: bytearray
    """What is there of it: memory is taken for what came, not for what is said to come."""
    clock: asyncio.TimerHandle


class Connection(HttpToolsProtocol):
    """uvicorn's, which hears only of what is not answered here."""

    _between = True
    """Whether uvicorn has heard of whole questions only."""
    _arriving: _Arriving | None = None
    _answering = False
    """Whether an answer is waited for."""
    _rest = b""
    """What came meanwhile."""
    _ending = False
    """Whether that answer is the last."""
    _asked = False
    """Whether anything was answered here since the clock of an idle connection was set."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._question = self.app.question if isinstance(self.app, Application) else _none

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        out = Gathering(transport, turn_of(self.loop))
        super().connection_made(out)  # type: ignore[arg-type]  # all that is asked of a transport

    def connection_lost(self, exc: Exception | None) -> None:
        if self._arriving is not None:
            self._arriving.clock.cancel()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        self._tell()  # and it is waited for
        if self._answering:
            self._ending = True
        else:
            super().shutdown()

    def data_received(self, data: bytes) -> None:
        arriving = self._arriving
        if arriving is None:
            self._read(data)
            return
        arriving.clock.cancel()
        question, body = arriving.question, arriving.body
        more = data[: question.size - len(body)]
        body += more  # now, while the rest is under way
        if len(body) < question.size:
            arriving.clock = self.loop.call_later(PATIENCE, self._tell)
        else:
            self._arriving = None
            self._answer(question, body)
            self._read(data[len(more) :])

    def on_message_begin(self) -> None:
        self._between = False
        super().on_message_begin()

    def on_message_complete(self) -> None:
        self._between = True
        super().on_message_complete()

    def timeout_keep_alive_handler(self) -> None:
        if self._asked or self._arriving is not None or self._answering:
            self._set_clock()
        else:
            super().timeout_keep_alive_handler()

    def _read(self, data: bytes) -> None:
        """What begins where a question may begin, or goes on with what was told to uvicorn."""
        while data:
            if self._answering:
                self._rest += data
                return
            end = data.find(END) + len(END)
            plain = data.startswith(b"POST ") and len(END) < end <= LONGEST and self._at_rest()
            question = self._question(data[:end]) if plain else None
            if question is None:
                super().data_received(data)
                return
            whole = end + question.size
            if len(data) < whole:
                clock = self.loop.call_later(PATIENCE, self._tell)
                self._arriving = _Arriving(question, data[:end], bytearray(data[end:]), clock)
                return
            self._answer(question, data[end:whole])
            data = data[whole:]

    def _at_rest(self) -> bool:
        """Whether uvicorn has nothing under way, and the other end reads what it is sent."""
        busy = self.cycle is not None and not self.cycle.response_complete
        return self._between and not (busy or self.flow.write_paused)

    def _tell(self) -> None:
        """What has arrived of a question reaches uvicorn."""
        arriving, self._arriving = self._arriving, None
        if arriving is not None:
            arriving.clock.cancel()
            super().data_received(arriving.head + arriving.body)

    def _answer(self, question: Question, body: Sent) -> None:
        answer = question.answer(body)
        if isinstance(answer, tuple):
            self._send(answer)
            return
        self._answering = True
        self.flow.pause_reading()
        task = self.loop.create_task(self._later(answer))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _later(self, answer: Awaitable[Whole]) -> None:
        told = await answer
        self._answering = False
        if self.transport.is_closing():
            return
        self._send(told)
        if self._ending:
            self.transport.close()
            return
        self.flow.resume_reading()
        rest, self._rest = self._rest, b""
        self._read(rest)

    def _send(self, answer: Whole) -> None:
        status, text = answer
        self.transport.write(b"%s%s%s" % (STATUS_LINE[status], _beginning(self.server_state.default_headers), text))
        self.server_state.total_requests += 1
        self._asked = True
        if self.timeout_keep_alive_task is None:
            self._set_clock()

    def _set_clock(self) -> None:
        """Of an idle connection. It is not set anew with every answer: it finds one or two of its times idle."""
        self._asked = False
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)


def _none(_head: bytes) -> None:
    """What another application is asked here."""


class _Beginning:
    """With uvicorn's own headers: the time, the same for a second, and those of every answer of ours."""

    def __init__(self) -> None:
        self._headers: Sequence[tuple[bytes, bytes]] = ()
        self._text = b""

    def __call__(self, headers: Sequence[tuple[bytes, bytes]]) -> bytes:
        if headers is not self._headers:
            self._headers = headers
            self._text = b"".join(map(line, (*headers, *STAMPS)))
        return self._text


_beginning = _Beginning()


class Turn:
    """What connections write in one turn of their event loop, sent together: to wake a reader takes 15 µs each time."""

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
        if now - self._since > LONGEST_TURN:
            self._end()

    def _end(self) -> None:
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            each.flush()


turn_of = lru_cache(maxsize=1)(Turn)
"""A process has one event loop."""


class Gathering:
    """A transport that sends what is written in one turn of the event loop as one piece: head and body, mostly."""

    def __init__(self, transport: asyncio.Transport, turn: Turn) -> None:
        self._transport, self._turn = transport, turn
        self._pieces: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._turn.wrote(self, first=len(self._pieces) == 1)

    def is_closing(self) -> bool:
        """Asked for with every answer."""
        return self._transport.is_closing()

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def flush(self) -> None:
        pieces, self._pieces = self._pieces, []
        if pieces and not self._transport.is_closing():
            self._transport.writelines(pieces)
