"""The uploaded file: opened as often as needed, unpacked on the way, and what it looks like."""

import io
import os
import zlib
from typing import BinaryIO, NamedTuple, cast

from app.errors import BodyTooLarge, InvalidData
from app.schemas.datasets import FileFormat

GZIP = b"\x1f\x8b"
HEAD = 1 << 16
_MAGIC = {
    b"PAR1": FileFormat.PARQUET,
    b"ARROW1": FileFormat.ARROW,
    b"\xff\xff\xff\xff": FileFormat.ARROW,  # a stream: the continuation mark
    b"\x93NUMPY": FileFormat.NPY,
}
_JSON_NAMES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
TEXT_FORMATS = {FileFormat.CSV, FileFormat.JSONL}


class Limits(NamedTuple):
    max_rows: int
    max_columns: int
    unpacked_bytes: int
    chunk_bytes: int


class Source(NamedTuple):
    """A file by its descriptor; gzip is known by its first bytes, whatever the name says."""

    descriptor: int
    size: int
    packed: bool
    unpacked_bytes: int

    @classmethod
    def of(cls, descriptor: int, unpacked_bytes: int) -> "Source":
        packed = os.pread(descriptor, 2, 0) == GZIP
        return cls(descriptor, os.fstat(descriptor).st_size, packed, unpacked_bytes)

    def open(self) -> BinaryIO:
        """From the start, unpacked."""
        raw = _Positioned(self.descriptor, self.size)
        return cast("BinaryIO", io.BufferedReader(_Unpacked(raw, self.unpacked_bytes) if self.packed else raw, 1 << 20))

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
        piece = os.pread(self._descriptor, len(buffer), self._at)
        self._at += len(piece)
        buffer[: len(piece)] = piece
        return len(piece)


class _Unpacked(io.RawIOBase):
    """gzip, one or more members; gives up past `room` bytes, however small the file."""

    def __init__(self, raw: io.RawIOBase, room: int) -> None:
        self._raw, self._room, self._limit = raw, room, room
        self._inflate = zlib.decompressobj(wbits=31)
        self._waiting = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # what BufferedReader hands in
        piece = self._piece(len(buffer))
        self._room -= len(piece)
        if self._room < 0:
            raise BodyTooLarge(f"Unpacked, the file is larger than {self._limit} bytes.")
        buffer[: len(piece)] = piece
        return len(piece)

    def _piece(self, most: int) -> bytes:
        """Up to `most` bytes; none only at the end."""
        try:
            while True:
                packed = self._waiting or self._raw.read(1 << 16)
                if not packed:
                    return self._end()
                if self._inflate.eof:
                    self._inflate = zlib.decompressobj(wbits=31)
                piece = self._inflate.decompress(packed, most)
                self._waiting = self._inflate.unconsumed_tail or self._inflate.unused_data
                if piece:
                    return piece
        except zlib.error:
            raise InvalidData("The gzip packing of this file is damaged.") from None

    def _end(self) -> bytes:
        if not self._inflate.eof:
            raise InvalidData("The gzip packing of this file ends too early.")
        return b""


def sniff(source: Source, name: str, given: FileFormat | None) -> FileFormat:
    """The format asked for; else by the first bytes; else JSON lines by name or a leading brace; else CSV."""
    head = source.head()
    found = next((form for magic, form in _MAGIC.items() if head.startswith(magic)), None)
    if given is None and found is None:
        looks_json = name.lower().endswith(_JSON_NAMES) or head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
        found = FileFormat.JSONL if looks_json else FileFormat.CSV
    chosen = given or found or FileFormat.CSV
    if source.packed and chosen not in TEXT_FORMATS:
        raise InvalidData("Only text files may be packed with gzip: the other formats compress inside.")
    return chosen
