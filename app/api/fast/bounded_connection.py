"""A connection within limits, which is closed only once its caller has had time to read the response.

Closing a socket with unread input resets the connection, and a caller that sends its body first never sees the
response. So after a response to a request that has not arrived as a whole the rest is read and dropped, within limits
of bytes and time (RFC 9112, 9.6). A head has limits too, and an absolute address states the host (RFC 9112, 3.2.2).
"""

import asyncio
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from app.api.edge.middleware import CLOSE_HEADER, STAMPS, Whole, line
from app.api.edge.problems import AddressTooLong, HeadTooLarge, MalformedRequest
from app.base.errors import RequestTimeout, ValiantError
from app.base.settings import GiB, KiB

MAX_ADDRESS_BYTES, MAX_HEAD_BYTES = 64 * KiB - 1, 256 * KiB
"""Limits on an address, and on all header fields of a request."""
HEAD_SECONDS = 30.0
"""Longest time from the first byte of a head to its last."""
DISCARDED_BYTES, DISCARDED_SECONDS, SILENT_SECONDS = GiB, 30.0, 5.0
"""Limits on what is read and dropped after a response, and on the time without any of it."""
LIGHT_BYTES = 256 * KiB
"""Largest body to which a caller gets the response who has shut down its side of the connection."""
LAST = {"Connection": "close"}
ABSOLUTE = re.compile(rb"(?i:https?)://([^/?#]*)")


class LingeringTransport:
    """A transport that is closed for its writer at once, and for its reader when the other end has sent all."""

    def __init__(self, transport: asyncio.Transport, connection: "BoundedConnection") -> None:
        self._transport, self._connection = transport, connection
        self._loop = connection.loop
        self._clock: asyncio.TimerHandle | None = None
        self._deadline = 0.0
        self._received = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    @property
    def lingers(self) -> bool:
        return self._clock is not None

    def is_closing(self) -> bool:
        return self._clock is not None or self._transport.is_closing()

    def write(self, chunk: bytes) -> None:
        if self._clock is None:
            self._transport.write(chunk)

    def writelines(self, chunks: Sequence[bytes]) -> None:
        if self._clock is None:
            self._transport.writelines(chunks)

    def close(self) -> None:
        """Close at once if all that the other end sent has been read."""
        if self._clock is not None:
            return
        if self._transport.is_closing() or not self._connection.has_unread_input():
            self._transport.close()
            return
        if self._transport.can_write_eof():  # else, by TLS, the other end knows from `Connection: close`
            self._transport.write_eof()
        self._connection.ended = True
        self._deadline = self._loop.time() + DISCARDED_SECONDS
        self._wait()
        self._transport.resume_reading()

    def drop(self, received: int) -> None:
        """Count bytes that came after the response."""
        self._received += received
        self._wait() if self._received <= DISCARDED_BYTES else self.end()

    def end(self) -> None:
        """Close without more ado."""
        if self._clock is not None:
            self._clock.cancel()
        self._transport.close()

    def _wait(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
        self._clock = self._loop.call_at(min(self._deadline, self._loop.time() + SILENT_SECONDS), self.end)


class BoundedConnection(HttpToolsProtocol):
    """uvicorn's protocol, with limits on heads and on what follows a response. Its application is an `Application`."""

    _outgoing: LingeringTransport
    _between = True
    """True if uvicorn has received whole requests only."""
    _in_head = False
    """True if a head has begun and is not complete."""
    ended = False
    """True if no more requests are read: responses to those before are sent, then the connection is closed."""
    _only_reads = False
    """True if the other end has shut down its side, and still gets responses."""
    _head_size, _body_size = 0, 0
    """Bytes of the header fields, and of the body, of the request that arrives."""
    _request_clock: asyncio.TimerHandle | None = None
    """Ends a head that does not arrive, or a body that is dropped."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        self._outgoing = LingeringTransport(transport, self)
        super().connection_made(self.wrap(self._outgoing))
        self._set_idle_clock(self.timeout_keep_alive)

    def wrap(self, transport: LingeringTransport) -> Any:
        """The transport to which this protocol writes: all that uvicorn uses of one."""
        return transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_request_clock()
        if self._outgoing.lingers:
            self._outgoing.end()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()

    def end(self) -> None:
        """Close the connection with its next response. uvicorn adds its header, and so does `beginning`."""
        if self.cycle is not None and not self.cycle.response_started:
            self.cycle.keep_alive = False

    def shutdown(self) -> None:
        if not self._outgoing.lingers:
            super().shutdown()

    def has_unread_input(self) -> bool:
        """True if the other end may be sending still, or has sent what is not read."""
        arriving = not self._between and not self._in_head
        return not self._only_reads and (self.ended or arriving or bool(self.pipeline) or self.flow.read_paused)

    def eof_received(self) -> bool | None:  # type: ignore[override]  # as asyncio's
        """A caller who sends no more may still read: the response to few bytes is sent, unless it has begun.

        Returns True to keep the connection, which TLS does not allow.
        """
        waits = self._between and self._is_responding() and not self.cycle.response_started
        if not waits or self._body_size > LIGHT_BYTES or self._outgoing.lingers or not self._outgoing.can_write_eof():
            return None
        self.ended = self._only_reads = True
        return True

    def data_received(self, data: bytes) -> None:
        if self._outgoing.lingers:
            self._outgoing.drop(len(data))
        elif not self.ended:
            super().data_received(data)
            busy = not self._between or self._is_responding() or self.transport.is_closing()
            if not busy and self.timeout_keep_alive_task is None:
                self._set_idle_clock(HEAD_SECONDS)  # blank lines

    def _is_responding(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    # the parser's events

    def on_message_begin(self) -> None:
        self._between, self._in_head = False, True
        self._head_size = self._body_size = 0
        self._set_request_clock(HEAD_SECONDS, self._refuse_late_head)
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > MAX_ADDRESS_BYTES:
            raise AddressTooLong(f"It may have {MAX_ADDRESS_BYTES} bytes.", headers=LAST)

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._head_size += len(name) + len(value)
        if self._head_size > MAX_HEAD_BYTES:
            raise HeadTooLarge(f"Together they may have {MAX_HEAD_BYTES} bytes.", headers=LAST)

    def on_headers_complete(self) -> None:
        self._stop_request_clock()
        if not self.url.startswith(b"/"):
            self._take_host_of_address()
        super().on_headers_complete()
        self._in_head = False

    def _take_host_of_address(self) -> None:
        """An absolute address states the host, whatever the Host header holds. Raises MalformedRequest."""
        absolute = ABSOLUTE.match(self.url)
        if absolute is None:
            raise MalformedRequest("The address begins with a slash, or with http:// or https://.", headers=LAST)
        others = [header for header in self.headers if header[0] != b"host"]
        if len(self.headers) - len(others) <= 1:  # several are refused, as always
            self.headers[:] = [*others, (b"host", absolute[1])]

    def on_body(self, body: bytes) -> None:
        self._body_size += len(body)
        if not self.cycle.response_complete:
            super().on_body(body)
        elif self._body_size > DISCARDED_BYTES:
            self._outgoing.end()

    def on_message_complete(self) -> None:
        self._between = True
        self._stop_request_clock()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        others = bool(self.pipeline)
        super().on_response_complete()
        if self.transport.is_closing() or others:
            return
        if self.ended:
            self.transport.close()
        elif not self._between and not self._in_head:  # what comes of the body still is dropped
            self._unset_keepalive_if_required()
            self._body_size = 0
            self._set_request_clock(DISCARDED_SECONDS, self._outgoing.end)

    def _set_request_clock(self, seconds: float, end: Callable[[], None]) -> None:
        self._stop_request_clock()
        self._request_clock = self.loop.call_later(seconds, end)

    def _stop_request_clock(self) -> None:
        if self._request_clock is not None:
            self._request_clock.cancel()
            self._request_clock = None

    def _set_idle_clock(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    # what is no request

    def _refuse_late_head(self) -> None:
        self._refuse(RequestTimeout(f"All of a head arrives within {HEAD_SECONDS:.0f} seconds.", headers=LAST))

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  as uvicorn's
        """The parser has failed, or a limit of ours was passed while it read."""
        failed = sys.exc_info()[1]
        cause = failed and failed.__context__
        self._refuse(cause if isinstance(cause, ValiantError) else MalformedRequest(headers=LAST))

    def _unsupported_upgrade_warning(self) -> None:
        """The parser reads nothing after a request for another protocol: it gets its response as any other."""
        self.ended = True
        if self._is_responding():
            self.cycle.keep_alive = False

    def _refuse(self, error: ValiantError) -> None:
        """Refuse what arrives, unless requests before it wait for their responses: then read no more."""
        self.ended = True
        in_body = not self._between and not self._in_head
        if in_body and self.pipeline:
            self.pipeline.popleft()  # the request whose body it is
            return
        if not in_body and self._is_responding():
            return
        if in_body:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if not in_body or not self.cycle.response_started:
            self.send_whole(self.app.refuse(error))
        self.transport.close()

    def send_whole(self, response: Whole) -> None:
        status, text = response
        self.transport.write(b"%s%s%s" % (STATUS_LINE[status], beginning(self.server_state.default_headers), text))
        self.server_state.total_requests += 1


class _Beginning:
    """With uvicorn's own headers: the time, the same for a second, and those of every response of ours."""

    def __init__(self) -> None:
        self._headers: Sequence[tuple[bytes, bytes]] = ()
        self._text = b""
        self.last = False
        """True if these headers end the connection."""

    def __call__(self, headers: Sequence[tuple[bytes, bytes]]) -> bytes:
        if headers is not self._headers:
            self._headers = headers
            self.last = CLOSE_HEADER in headers
            self._text = b"".join(map(line, (*headers, *STAMPS)))
        return self._text


beginning = _Beginning()
