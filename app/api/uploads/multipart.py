"""Multipart forms that carry a file, read like a raw body: FastAPI would first put all of it into files of its own."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.datastructures import FormData, UploadFile

from app.api.edge.admission import GuardedRoute
from app.api.uploads.spool import FORM, Spool, body_chunks, declared
from app.base.errors import InvalidRequest, UnsupportedMediaType
from app.base.settings import MiB

FIELD_BYTES = 4096
LONG_FIELDS = {"kinds": 4 * MiB}
"""Fields that hold something for every column of a wide table."""
MOST_PARTS = 120


class FileFormRoute(GuardedRoute):
    """The `route_class` of forms that carry a file. The handler's UploadFile holds a `Spool`, which it must close."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def spooling(request: Request) -> Response:
            with request.app.services.datasets.spool() as file:
                form = _FileForm(request, Spool(file))
                await form.arrive()  # here, as FastAPI would call every failure of `form` a malformed body
                return await handle(form)

        return spooling


class _FileForm(Request):
    def __init__(self, request: Request, spool: Spool) -> None:
        super().__init__(request.scope, request.receive)
        self._spool = spool
        self._most: int = request.app.settings.max_upload_bytes
        request.scope["spool"] = spool

    async def form(self, **_: Any) -> FormData:  # type: ignore[override]  # awaited by FastAPI, never entered
        return self._arrived

    async def arrive(self) -> None:
        """Raises BodyTooLarge, RequestTimeout, StorageFull, UnsupportedMediaType or InvalidRequest."""
        self._spool.demand_room(declared(self, self._most))
        kind, options = parse_options_header(self.headers.get("content-type"))
        if kind != FORM.encode() or b"boundary" not in options:
            raise UnsupportedMediaType("A form with a file is multipart/form-data.")
        try:
            self._arrived = await self._parse(options[b"boundary"])
        except FormParserError:
            raise InvalidRequest("The form is not readable.") from None

    async def _parse(self, boundary: bytes) -> FormData:
        form = _Form(boundary)
        async for chunk in body_chunks(self, self._most):
            for data in form.feed(chunk):
                await self._spool.write(data)
        form.finish()
        await self._spool.flush()
        fields: list[tuple[str, str | UploadFile]] = [*form.fields]
        if form.filename is not None:
            fields.append(("file", UploadFile(self._spool.file, size=self._spool.size, filename=form.filename)))
        return FormData(fields)


class _Form:
    """One file, named `file`, handed on as it comes, and a few short fields."""

    def __init__(self, boundary: bytes) -> None:
        self.fields: list[tuple[str, str]] = []
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

    def feed(self, chunk: bytes) -> list[bytes]:
        """The part of `chunk` that belongs to the file."""
        self._parser.write(chunk)
        parts, self._file = self._file, []
        return parts

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
        most = LONG_FIELDS.get(self._field, FIELD_BYTES)
        if len(self._text) > most:
            raise InvalidRequest(f"This field of a form has at most {most} bytes.")

    def _end(self) -> None:
        if self._field is not None:
            self.fields.append((self._field, self._text.decode("utf-8", "replace")))

    def _ended(self) -> None:
        self._complete = True
