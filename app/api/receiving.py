"""Files on their way in: from the socket to a spool file, never in memory, and no further than the limits.

A multipart form goes the same way as a raw body: FastAPI would first put all of it into files of its own.
"""

import asyncio
import errno
import hashlib
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, BinaryIO

from fastapi import Request, Response
from fastapi.routing import APIRoute
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile

from app.errors import BodyTooLarge, InvalidRequest, RequestTimeout, StorageFull, UnsupportedMediaType

FORM = "multipart/form-data"
FIELD_BYTES = 4096
MOST_PARTS = 10
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

    async def write(self, piece: bytes) -> None:
        self.size += len(piece)
        self._waiting += piece
        if len(self._waiting) >= WRITE_BYTES:
            await self.flush()

    async def flush(self) -> None:
        """Off the event loop: a disk may be slow, and hashing releases the interpreter."""
        await run_in_threadpool(self._flush, bytes(self._waiting))
        self._waiting.clear()

    def _flush(self, piece: bytes) -> None:
        self._digest.update(piece)
        try:
            self.file.write(piece)
            self.file.flush()
        except OSError as error:
            if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
                raise StorageFull from None
            raise


def demand_raw(request: Request) -> None:
    if request.headers.get("content-type", "").lower().startswith(FORM):
        raise UnsupportedMediaType("Forms go to /v1/datasets/upload; here the body is the file itself.")


async def receive(request: Request, spool: Spool) -> None:
    """The body into `spool`. Raises BodyTooLarge, RequestTimeout or StorageFull."""
    spool.demand_room(_declared(request))
    async for piece in _pieces(request):
        await spool.write(piece)
    await spool.flush()


def _declared(request: Request) -> int:
    """The size the sender announces; 0 if it does not. Raises BodyTooLarge."""
    length = request.headers.get("content-length", "0")
    size = int(length[:20]) if length.isascii() and length.isdigit() else 0  # int() refuses thousands of digits
    if size > request.app.state.settings.max_upload_bytes:
        raise _too_large(request)
    return size


async def _pieces(request: Request) -> AsyncIterator[bytes]:
    """What arrives, whatever was announced, until it is too much or too late."""
    settings, size = request.app.state.settings, 0
    stream = request.stream()
    while True:
        try:
            async with asyncio.timeout(settings.upload_timeout_seconds):
                piece = await anext(stream, None)
        except TimeoutError:
            raise RequestTimeout from None
        if piece is None:
            return
        size += len(piece)
        if size > settings.max_upload_bytes:
            raise _too_large(request)
        yield piece


def _too_large(request: Request) -> BodyTooLarge:
    return BodyTooLarge(f"At most {request.app.state.settings.max_upload_bytes} bytes are accepted.")


class FileFormRoute(APIRoute):
    """The `route_class` of forms that carry a file. The handler's UploadFile holds a `Spool`, which it must close."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def spooling(request: Request) -> Response:
            with request.app.state.services.datasets.spool() as file:
                form = _FileForm(request, Spool(file))
                await form.arrive()  # here, as FastAPI would call every failure of `form` a malformed body
                return await handle(form)

        return spooling


class _FileForm(Request):
    def __init__(self, request: Request, spool: Spool) -> None:
        super().__init__(request.scope, request.receive)
        self._spool = spool
        request.scope["spool"] = spool

    async def form(self, **_: Any) -> FormData:  # type: ignore[override]  # awaited by FastAPI, never entered
        return self._arrived

    async def arrive(self) -> None:
        """Raises BodyTooLarge, RequestTimeout, StorageFull, UnsupportedMediaType or InvalidRequest."""
        self._spool.demand_room(_declared(self))
        kind, options = parse_options_header(self.headers.get("content-type"))
        if kind != FORM.encode() or b"boundary" not in options:
            raise UnsupportedMediaType("A form with a file is multipart/form-data.")
        try:
            self._arrived = await self._parse(options[b"boundary"])
        except FormParserError:
            raise InvalidRequest("The form is not readable.") from None

    async def _parse(self, boundary: bytes) -> FormData:
        form = _Form(boundary)
        async for piece in _pieces(self):
            for data in form.feed(piece):
                await self._spool.write(data)
        form.finish()
        await self._spool.flush()
        fields: list[tuple[str, str | UploadFile]] = list(form.fields.items())
        if form.filename is not None:
            fields.append(("file", UploadFile(self._spool.file, size=self._spool.size, filename=form.filename)))
        return FormData(fields)


class _Form:
    """One file, named `file`, handed on as it comes, and a few short fields."""

    def __init__(self, boundary: bytes) -> None:
        self.fields: dict[str, str] = {}
        self.filename: str | None = None
        self._parts = 0
        self._headers: dict[bytes, bytes] = {}
        self._header, self._value = b"", b""
        self._field: str | None = None
        self._text = bytearray()
        self._file: list[bytes] = []
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin,
                "on_header_field": self._header_field,
                "on_header_value": self._header_value,
                "on_header_end": self._header_end,
                "on_headers_finished": self._opened,
                "on_part_data": self._data,
                "on_part_end": self._end,
                "on_end": self._ended,
            },
        )
        self._complete = False

    def feed(self, piece: bytes) -> list[bytes]:
        """What of `piece` belongs to the file."""
        self._parser.write(piece)
        found, self._file = self._file, []
        return found

    def finish(self) -> None:
        self._parser.finalize()
        if not self._complete:
            raise FormParserError("cut")

    def _begin(self) -> None:
        self._parts += 1
        self._headers.clear()
        if self._parts > MOST_PARTS:
            raise InvalidRequest(f"A form has at most {MOST_PARTS} parts.")

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _header_end(self) -> None:
        self._headers[self._header.lower()] = self._value
        self._header, self._value = b"", b""

    def _opened(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition"))
        name = options.get(b"name", b"").decode("utf-8", "replace")
        self._field = None if name == "file" else name
        if name != "file":
            self._text.clear()
        elif self.filename is not None:
            raise InvalidRequest("A form carries one file.")
        else:
            self.filename = options.get(b"filename", b"").decode("utf-8", "replace")

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._field is None:
            self._file.append(data[start:end])
            return
        self._text += data[start:end]
        if len(self._text) > FIELD_BYTES:
            raise InvalidRequest(f"A field of a form has at most {FIELD_BYTES} bytes.")

    def _end(self) -> None:
        if self._field is not None:
            self.fields[self._field] = self._text.decode("utf-8", "replace")

    def _ended(self) -> None:
        self._complete = True
