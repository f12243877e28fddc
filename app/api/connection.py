"""A connection of the API: a question whose answer is at hand is answered where it arrives.

The usual way of a request, a parser that tells its parts, a task of the event loop that hears of it and tells the
answer in messages, costs more than a small prediction. Whatever is not quite plain takes that way, which is uvicorn's.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.api.direct import Application
from app.api.heads import END, LONGEST
from app.api.middleware import STAMPS, line
from app.settings import KiB

LARGEST = 64 * KiB
"""Of a body that is waited for here."""
PATIENCE = 1.0
"""Seconds to wait for the rest of a question, before it takes the usual way, which has clocks of its own."""


class Connection(HttpToolsProtocol):
    """uvicorn's, which hears only of what is not answered here."""

    _between = True
    """Whether uvicorn has heard of whole questions only."""
    _came = b""
    """The beginning of a question that was not told to uvicorn."""
    _waiting: asyncio.TimerHandle | None = None
    """Until it is."""
    _asked = False
    """Whether anything was answered here since the clock of an idle connection was set."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._question = self.app.question if isinstance(self.app, Application) else _none

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        self._out = Gathering(transport, self.loop)
        super().connection_made(self._out)  # type: ignore[arg-type]  # all that is asked of a transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_more()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        self._tell()  # so that what has begun to arrive is waited for
        super().shutdown()

    def data_received(self, data: bytes) -> None:
        if self._came:
            self._wait_no_more()
            self._came, data = b"", self._came + data
        while data and self._at_rest():
            end = data.find(END) + len(END)
            if not (data.startswith(b"POST ") and len(END) < end <= LONGEST):
                break
            question = self._question(data[:end])
            if question is None or question.size > LARGEST:
                break
            whole = end + question.size
            if len(data) < whole:
                self._came = data
                self._waiting = self.loop.call_later(PATIENCE, self._tell)
                return
            answer = question.answer(data[end:whole])
            if answer is None:
                break
            self._send(answer)
            data = data[whole:]
        if data:
            super().data_received(data)

    def on_message_begin(self) -> None:
        self._between = False
        super().on_message_begin()

    def on_message_complete(self) -> None:
        self._between = True
        super().on_message_complete()

    def timeout_keep_alive_handler(self) -> None:
        if self._asked or self._came:
            self._set_clock()
        else:
            super().timeout_keep_alive_handler()

    def _at_rest(self) -> bool:
        """Whether nothing is under way, and the other end reads what it is sent."""
        busy = self.cycle is not None and not self.cycle.response_complete
        return self._between and not (busy or self.flow.write_paused)

    def _tell(self) -> None:
        """What was kept back reaches uvicorn."""
        self._wait_no_more()
        if self._came:
            came, self._came = self._came, b""
            super().data_received(came)

    def _wait_no_more(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _send(self, answer: bytes) -> None:
        self._out.send(_beginning(self.server_state.default_headers) + answer)
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
            self._text = b"HTTP/1.1 200 OK\r\n" + b"".join(map(line, (*headers, *STAMPS)))
        return self._text


_beginning = _Beginning()


class Gathering:
    """A transport that sends what is written in one turn of the event loop as one piece: head and body, mostly."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._pieces: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, piece: bytes) -> None:
        if not self._pieces:
            self._loop.call_soon(self._flush)
        self._pieces.append(piece)

    def is_closing(self) -> bool:
        """Asked for with every answer."""
        return self._transport.is_closing()

    def send(self, piece: bytes) -> None:
        """Now, behind what was written."""
        self._flush()
        self._transport.write(piece)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._pieces:
            self._transport.writelines(self._pieces)
            self._pieces = []
