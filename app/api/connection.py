"""A connection of the API: a question that came whole, and whose answer is at hand, is answered where it arrives.

The usual way of a request, a task of the event loop that hears of it and tells the answer in messages, costs more than
a small prediction. Whatever is not quite plain takes that way, which is uvicorn's.
"""

import asyncio
from functools import lru_cache
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.api.direct import Application
from app.api.middleware import STAMPS


class Connection(HttpToolsProtocol):
    """uvicorn's, and what its parser tells of a request is kept back until the request is whole."""

    _kept: list[bytes] | None = None
    """Pieces of the body; None if uvicorn was told."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._application = self.app if isinstance(self.app, Application) else None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        self._out = Gathering(transport, self.loop)
        super().connection_made(self._out)  # type: ignore[arg-type]  # all that is asked of a transport

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._kept is not None:
            self._tell()

    def on_message_begin(self) -> None:
        self.url, self.headers, self.expect_100_continue = b"", [], False

    def on_headers_complete(self) -> None:
        if self._is_plain():
            self._kept = []
        else:
            self._tell()

    def on_body(self, body: bytes) -> None:
        if self._kept is None:
            super().on_body(body)
        else:
            self._kept.append(body)

    def on_message_complete(self) -> None:
        if self._kept is None:
            super().on_message_complete()
        elif not self._answer(b"".join(self._kept)):
            self._tell()
            super().on_message_complete()

    def _is_plain(self) -> bool:
        parser, busy = self.parser, self.cycle is not None and not self.cycle.response_complete
        return (
            self._application is not None
            and not (busy or self.flow.write_paused or self.expect_100_continue or parser.should_upgrade())
            and parser.get_method() == b"POST"
            and parser.get_http_version() == "1.1"
            and parser.should_keep_alive()
        )

    def _tell(self) -> None:
        """What was kept back reaches uvicorn."""
        pieces, self._kept = self._kept or [], None
        url, headers, expects = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        self.url, self.expect_100_continue = url, expects
        self.headers += headers  # the list that is in the scope by now
        super().on_headers_complete()
        for piece in pieces:
            super().on_body(piece)

    def _answer(self, body: bytes) -> bool:
        """Whether it could be."""
        assert self._application is not None  # noqa: S101  else nothing is kept back
        answer = self._application.at_once(self.url, self.headers, body)
        if answer is None:
            return False
        self._kept = None
        headers, told = answer
        lines = [b"%s: %s\r\n" % pair for pair in headers]
        self._out.send(b"".join([_beginning(*self.server_state.default_headers), *lines, b"\r\n", told]))
        self.on_response_complete()
        return True


@lru_cache(1)
def _beginning(*headers: tuple[bytes, bytes]) -> bytes:
    """With uvicorn's own headers: the time, the same for a second, and those of every answer of ours."""
    return b"HTTP/1.1 200 OK\r\n" + b"".join(b"%s: %s\r\n" % pair for pair in (*headers, *STAMPS))


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
