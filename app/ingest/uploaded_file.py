"""The uploaded file: opened as often as needed, decompressed and decoded while it is read."""

import io
import os
import zlib
from typing import BinaryIO, NamedTuple, cast

from app.errors import BodyTooLarge, InvalidData
from app.ingest.text_encoding import UTF8, Transcoded

GZIP = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"
HEAD = 1 << 16
NOT_UTF8 = "save the file as UTF-8, or give its encoding, such as encoding=windows-1252."
"""Advice about a text file that cannot be read."""


class Limits(NamedTuple):
    max_rows: int
    max_columns: int
    unpacked_bytes: int
    chunk_bytes: int


class Source(NamedTuple):
    """A file by its descriptor; gzip is known by its first bytes, whatever its name."""

    descriptor: int
    size: int
    packed: bool
    unpacked_bytes: int
    encoding: str = UTF8
    """Encoding of a text file; its text is read as UTF-8 in any case."""

    @classmethod
    def of(cls, descriptor: int, unpacked_bytes: int) -> "Source":
        packed = os.pread(descriptor, 2, 0) == GZIP
        return cls(descriptor, os.fstat(descriptor).st_size, packed, unpacked_bytes)

    def open(self) -> BinaryIO:
        """From the start, unpacked and in UTF-8."""
        raw: io.RawIOBase = _Positioned(self.descriptor, self.size)
        if self.packed:
            raw = _Unpacked(raw, self.unpacked_bytes)
        if self.encoding != UTF8:
            raw = Transcoded(raw, self.encoding)
        return cast("BinaryIO", io.BufferedReader(raw, 1 << 20))

    def head(self) -> bytes:
        return self.open().read(HEAD)


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


class _Unpacked(io.RawIOBase):
    """gzip, one or more members; gives up past `room` bytes, however small the file."""

    def __init__(self, raw: io.RawIOBase, room: int) -> None:
        self._raw, self._room, self._limit = raw, room, room
        self._inflate = zlib.decompressobj(wbits=31)
        self._waiting = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # what BufferedReader hands in
        chunk = self._chunk(len(buffer))
        self._room -= len(chunk)
        if self._room < 0:
            raise BodyTooLarge(f"Unpacked, the file is larger than {self._limit} bytes.")
        buffer[: len(chunk)] = chunk
        return len(chunk)

    def _chunk(self, most: int) -> bytes:
        """Up to `most` bytes; none only at the end."""
        try:
            while True:
                packed = self._waiting or self._raw.read(1 << 16)
                if not packed:
                    return self._end()
                if self._inflate.eof:
                    self._inflate = zlib.decompressobj(wbits=31)
                chunk = self._inflate.decompress(packed, most)
                self._waiting = self._inflate.unconsumed_tail or self._inflate.unused_data
                if chunk:
                    return chunk
        except zlib.error:
            raise InvalidData("The gzip packing of this file is damaged.") from None

    def _end(self) -> bytes:
        if not self._inflate.eof:
            raise InvalidData("The gzip packing of this file ends too early.")
        return b""
