"""Request bodies compressed with gzip or deflate, named by `Content-Encoding` (RFC 9110, 8.4), decompressed in steps.

A few bytes may decompress to a thousand times as many: nothing is decompressed before all of it has arrived or ahead of
what the reader takes, and bodies that are held in memory are decompressed one after the other.
"""

import asyncio
import zlib
from collections.abc import Iterator, Mapping
from functools import lru_cache

from app.base.errors import BodyTooLarge, UnsupportedMediaType, ValiantError
from app.base.settings import KiB

STEP, FED = 256 * KiB, 16 * KiB
"""Most bytes that one step returns, and that one step reads."""
NAMES = {b"gzip": b"gzip", b"x-gzip": b"gzip", b"deflate": b"deflate"}
GZIP, ZLIB, RAW = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS
ZLIB_METHOD = 8
"""Low four bits of the first byte of the zlib format; raw deflate, which some clients send, never begins so."""


class UnsupportedEncoding(UnsupportedMediaType):
    code, title = "unsupported_content_encoding", "The Content-Encoding of the body is not supported"


class MalformedEncoding(ValiantError):
    code, status, title = "malformed_content_encoding", 400, "The body cannot be decompressed"


class Inflater:
    """Decompresses a body that arrives in chunks."""

    def __init__(self, name: bytes) -> None:
        self._name = name
        self._stream: zlib._Decompress | None = None

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The decompressed chunk, at most STEP bytes at a time. Raises MalformedEncoding."""
        view = memoryview(chunk)
        for start in range(0, len(view), FED):
            try:
                yield from self._steps(view[start : start + FED])
            except zlib.error:
                raise MalformedEncoding(f"The body is not valid {self._name.decode()}, or it is damaged.") from None

    def _steps(self, left: bytes | memoryview) -> Iterator[bytes]:
        part = b""
        while left or len(part) == STEP:  # a full step may have kept something back
            stream = self._next(left[0]) if left and (self._stream is None or self._stream.eof) else self._stream
            assert stream is not None  # noqa: S101  there is something left, or there was
            self._stream = stream
            part = stream.decompress(left, STEP)
            left = stream.unconsumed_tail or stream.unused_data
            yield part

    def _next(self, first: int) -> "zlib._Decompress":
        """For the first or, as gzip allows, for one more compressed stream. Raises zlib.error."""
        if self._name == b"gzip":
            return zlib.decompressobj(GZIP)
        if self._stream is not None:
            raise zlib.error
        return zlib.decompressobj(ZLIB if first & 0x0F == ZLIB_METHOD else RAW)

    def finish(self) -> None:
        """Raises MalformedEncoding where the end is missing."""
        if self._stream is not None and not self._stream.eof:
            raise MalformedEncoding(f"The {self._name.decode()} body ends too early: send all of it.")


def inflater_of(headers: Mapping[bytes, bytes]) -> Inflater | None:
    """None for a body that is not compressed. Raises UnsupportedEncoding."""
    stated = headers.get(b"content-encoding", b"").strip().lower()
    if stated in {b"", b"identity"}:
        return None
    if stated not in NAMES:
        detail = (
            "Content-Encoding: send the body as it is, or compressed once with gzip or deflate. A file of another "
            "compression, such as zstd, is uploaded without the header: it is recognised by its first bytes."
        )
        raise UnsupportedEncoding(detail, headers={"Accept-Encoding": "gzip, deflate"})
    return Inflater(NAMES[stated])


@lru_cache(maxsize=1)
def _turn(_loop: asyncio.AbstractEventLoop) -> asyncio.Lock:
    return asyncio.Lock()


async def inflated(body: bytes, inflater: Inflater, *, most: int) -> bytes:
    """The whole body, of at most `most` bytes. Raises BodyTooLarge, MalformedEncoding.

    On the event loop, which runs others after each step: threads may all be waiting for the database.
    """
    parts, size = [], 0
    async with _turn(asyncio.get_running_loop()):
        for part in inflater.feed(body):
            size += len(part)
            if size > most:
                raise BodyTooLarge(f"The body has more than {most} bytes after decompression; that is the limit.")
            parts.append(part)
            if len(part) == STEP:
                await asyncio.sleep(0)
    inflater.finish()
    return b"".join(parts)
