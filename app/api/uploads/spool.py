"""Uploads: from the socket to a spool file, never in memory, and no further than the limits."""

import asyncio
import hashlib
import os
import time
from collections.abc import AsyncIterator
from typing import BinaryIO

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from app.api.edge.body import BY_NAME, seconds_to_wait
from app.api.edge.content_encoding import inflater_of
from app.base.errors import NO_ROOM, BodyTooLarge, RequestTimeout, StorageFull, UnsupportedMediaType

FORM = "multipart/form-data"
WRITE_BYTES = 1 << 20
FREE_BYTES = 16 << 20
"""Left free on the disk of the spool."""


class Spool:
    """A file that counts and digests what it gets."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.size = 0
        self._digest = hashlib.sha256()
        self._waiting = bytearray()

    @property
    def digest(self) -> str:
        return f"sha256:{self._digest.hexdigest()}"

    def demand_room(self, size: int) -> None:
        """Raises StorageFull where `size` bytes cannot fit."""
        disk = os.fstatvfs(self.file.fileno())
        if size + FREE_BYTES > disk.f_bavail * disk.f_frsize:
            raise StorageFull

    async def write(self, chunk: bytes) -> None:
        self.size += len(chunk)
        self._waiting += chunk
        if len(self._waiting) >= WRITE_BYTES:
            await self.flush()

    async def flush(self) -> None:
        """Off the event loop: a disk may be slow, and hashing releases the interpreter."""
        await run_in_threadpool(self._flush, bytes(self._waiting))
        self._waiting.clear()

    def _flush(self, chunk: bytes) -> None:
        self._digest.update(chunk)
        try:
            self.file.write(chunk)
            self.file.flush()
        except OSError as error:
            if error.errno in NO_ROOM:
                raise StorageFull from None
            raise


def demand_raw(request: Request) -> None:
    if request.headers.get("content-type", "").lower().startswith(FORM):
        raise UnsupportedMediaType("Forms go to /v1/datasets/upload; here the body is the file itself.")


async def receive(request: Request, spool: Spool, most: int) -> None:
    """The body, decompressed, into `spool`. Raises what `chunks` does, and StorageFull.

    most: bytes of the body.
    """
    spool.demand_room(declared(request, most))
    async for chunk in body_chunks(request, most):
        await spool.write(chunk)
    await spool.flush()


def declared(request: Request, most: int) -> int:
    """The size the sender announces; 0 if it does not. Raises BodyTooLarge."""
    length = request.headers.get("content-length", "0")
    size = int(length[:20]) if length.isascii() and length.isdigit() else 0  # int() refuses thousands of digits
    if size > most:
        raise _too_large(most)
    return size


async def body_chunks(request: Request, most: int) -> AsyncIterator[bytes]:
    """The body, decompressed, until it is too much or too late.

    Raises UnsupportedEncoding, BodyTooLarge, RequestTimeout, MalformedEncoding.
    """
    inflater, size = inflater_of(request.scope[BY_NAME]), 0
    async for arrived in _arriving(request, most):
        for chunk in (arrived,) if inflater is None else inflater.feed(arrived):
            size += len(chunk)
            if size > most:
                raise _too_large(most)
            yield chunk
    if inflater is not None:
        inflater.finish()


async def _arriving(request: Request, most: int) -> AsyncIterator[bytes]:
    """The bytes that arrive, whatever was announced."""
    settings, size, begun = request.app.settings, 0, time.monotonic()
    stream = request.stream()
    while True:
        try:
            async with asyncio.timeout(seconds_to_wait(settings, begun, size)):
                chunk = await anext(stream, None)
        except TimeoutError:
            raise RequestTimeout(headers={"Connection": "close"}) from None
        if chunk is None:
            return
        size += len(chunk)
        if size > most:
            raise _too_large(most)
        yield chunk


def _too_large(most: int) -> BodyTooLarge:
    return BodyTooLarge(f"At most {most} bytes are accepted.", headers={"Connection": "close"})
