"""The body of a request as it arrives: no more than it may be, and not for longer than it may take."""

import asyncio
import sys
import time
from collections.abc import Awaitable, Coroutine, Generator, Mapping
from types import CoroutineType
from typing import Any, Generic, TypeVar

from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope

from app.api.edge.content_encoding import inflated, inflater_of
from app.base.errors import BodyTooLarge, RequestTimeout
from app.base.settings import Settings

MIN_BYTES_PER_SECOND = 1024
"""A body that comes more slowly, once its time without a byte has passed, does not arrive in time."""
T = TypeVar("T")
Headers = Mapping[bytes, bytes]
BY_NAME = "valiant.headers"
"""Key of the scope under which `app.api.edge.middleware` leaves the result of `headers_of`."""


def headers_of(scope: Scope) -> Headers:
    """By lower-case name; of several with one name the first."""
    return dict(reversed(scope["headers"]))


async def read(receive: Receive, headers: Headers, settings: Settings, *, most: int = sys.maxsize) -> bytes:
    """The whole body, decompressed, of at most `most` bytes and what the settings allow.

    Raises UnsupportedEncoding, BodyTooLarge, RequestTimeout, MalformedEncoding.
    """
    most, inflater = min(most, settings.max_body_bytes), inflater_of(headers)
    declared = headers.get(b"content-length", b"")
    if declared.isdigit() and int(declared[:20]) > most:
        raise _too_large(most)
    chunks, size, more, begun = [], 0, True, time.monotonic()
    while more:
        try:
            message = await _within(seconds_to_wait(settings, begun, size), receive())
        except TimeoutError:
            raise RequestTimeout(headers={"Connection": "close"}) from None
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk, more = message.get("body", b""), message.get("more_body", False)
        size += len(chunk)
        if size > most:
            raise _too_large(most)
        chunks.append(chunk)
    body = b"".join(chunks)
    return body if inflater is None else await inflated(body, inflater, most=most)


def seconds_to_wait(settings: Settings, begun: float, size: int) -> float:
    """Longest wait for the next bytes of a body that began to arrive at `begun`, and of which `size` bytes are here."""
    silence = settings.upload_timeout_seconds
    return max(0.0, min(silence, begun + silence + size / MIN_BYTES_PER_SECOND - time.monotonic()))


def _too_large(most: int) -> BodyTooLarge:
    return BodyTooLarge(f"At most {most} bytes are read.", headers={"Connection": "close"})


async def _within(seconds: float, call: Awaitable[T]) -> T:
    """The result of `call`. Raises TimeoutError. Most bodies are there: a clock is set only where one is not."""
    assert isinstance(call, CoroutineType)  # noqa: S101  every server's are
    try:
        awaited = call.send(None)
    except StopIteration as done:
        there: T = done.value
        return there
    async with asyncio.timeout(seconds):
        return await _Begun(call, awaited)


class _Begun(Generic[T]):
    """A coroutine that stopped at something it awaits, to be awaited from there."""

    def __init__(self, call: Coroutine[Any, Any, T], awaited: object) -> None:
        self._call = call
        self._awaited = awaited

    def __await__(self) -> Generator[Any, Any, T]:
        try:
            yield self._awaited
        except BaseException:
            self._call.close()
            raise
        return (yield from self._call.__await__())
