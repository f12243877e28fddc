"""The uploaded file: opened as often as needed, decompressed and decoded while it is read."""

import io
import os
from typing import BinaryIO, NamedTuple, cast

from app.ingest.compression import Layer, Unpacked
from app.ingest.text_encoding import UTF8, Transcoded

BOM = b"\xef\xbb\xbf"
HEAD = 1 << 16
BUFFER_BYTES = 1 << 20
NOT_UTF8 = "save the file as UTF-8, or give its encoding, such as encoding=windows-1252."
"""Advice about a text file that cannot be read."""


class Limits(NamedTuple):
    max_rows: int
    max_columns: int
    unpacked_bytes: int
    chunk_bytes: int


class Source(NamedTuple):
    """A file by its descriptor, what it is packed in, and the encoding of its text."""

    descriptor: int
    size: int
    unpacked_bytes: int
    layers: tuple[Layer, ...] = ()
    """From the outermost."""
    encoding: str = UTF8
    """Encoding of a text file; its text is read as UTF-8 in any case."""
    content: bytes | None = None
    """The file, where it is held in memory."""

    @classmethod
    def of(cls, descriptor: int, unpacked_bytes: int) -> "Source":
        return cls(descriptor, os.fstat(descriptor).st_size, unpacked_bytes)

    def open(self, buffer_bytes: int = BUFFER_BYTES) -> BinaryIO:
        """From the start, unpacked and in UTF-8."""
        raw: io.RawIOBase | io.BytesIO = _Positioned(self.descriptor, self.size)
        if self.content is not None:
            raw = io.BytesIO(self.content)
        for layer in self.layers:
            raw = Unpacked(layer, cast("BinaryIO", raw), self.unpacked_bytes)
        if self.encoding != UTF8:
            raw = Transcoded(raw, self.encoding)
        return cast("BinaryIO", io.BufferedReader(cast("io.RawIOBase", raw), buffer_bytes))

    def head(self) -> bytes:
        return self.open(HEAD).read(HEAD)

    def read_range(self, start: int, count: int) -> bytes:
        """Bytes of a file without layers."""
        if self.content is not None:
            return self.content[start : start + count]
        return os.pread(self.descriptor, count, start)

    def seekable(self) -> "Source":
        """The same file without layers, in memory if it had any."""
        if not self.layers:
            return self
        content = self.open().read()
        return self._replace(layers=(), content=content, size=len(content))


class _Positioned(io.RawIOBase):
    """The file with a position of its own: Arrow may still read ahead for a reader that was given up."""

    def __init__(self, descriptor: int, size: int) -> None:
        self._descriptor, self._size, self._at = descriptor, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # what BufferedReader hands in
        chunk = os.pread(self._descriptor, len(buffer), self._at)
        self._at += len(chunk)
        buffer[: len(chunk)] = chunk
        return len(chunk)
