"""Compressed files, recognised by their first bytes and decompressed while they are read: gzip, bzip2, xz, zstd, lz4.

Arrow, which is here anyway, has all but xz; this one is in the standard library.
"""

import io
import lzma
import re
import zipfile
import zlib
from collections.abc import Callable
from functools import partial
from typing import BinaryIO, NamedTuple, NoReturn, cast

import pyarrow as pa

from app.base.errors import BodyTooLarge, InvalidData
from app.base.faults import Fault, place


class Layer(NamedTuple):
    """A way to look into a file: its compression, or a file within an archive."""

    name: str
    """Noun phrase for a sentence."""
    open: Callable[[BinaryIO], BinaryIO]


def _by_arrow(codec: str) -> Callable[[BinaryIO], BinaryIO]:
    return partial(pa.CompressedInputStream, compression=codec)


def _open_xz(file: BinaryIO) -> BinaryIO:
    return cast("BinaryIO", lzma.LZMAFile(file))


_COMPRESSIONS = {
    rb"\x1f\x8b": Layer("gzip compression", _by_arrow("gzip")),
    rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)": Layer("bzip2 compression", _by_arrow("bz2")),
    rb"\xfd7zXZ\x00": Layer("xz compression", _open_xz),
    rb"[\x28\x50-\x5f](?:\xb5\x2f\xfd|\x2a\x4d\x18)": Layer("zstd compression", _by_arrow("zstd")),
    rb"\x04\x22\x4d\x18": Layer("lz4 compression", _by_arrow("lz4")),
}
"""By the first bytes."""
COMPRESSED_SUFFIXES = (".gz", ".bz2", ".xz", ".zst", ".lz4")


def find_compression(head: bytes) -> Layer | None:
    """The compression of a file that begins so; None if it has none."""
    return next((layer for start, layer in _COMPRESSIONS.items() if re.match(start, head)), None)


def without_suffix(name: str) -> str:
    """The name without the suffixes of compressions."""
    lower = name.lower()
    suffix = next((suffix for suffix in COMPRESSED_SUFFIXES if lower.endswith(suffix)), None)
    return name if suffix is None else without_suffix(name[: -len(suffix)])


class Unpacked(io.RawIOBase):
    """The content behind a layer; gives up past `limit` bytes, however small the file."""

    def __init__(self, layer: Layer, file: BinaryIO, limit: int) -> None:
        self._layer, self._limit, self._size = layer, limit, 0
        try:
            self._content = layer.open(file)
        except _DAMAGED as error:
            self._refuse(error)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # what BufferedReader hands in
        try:
            chunk = self._content.read(len(buffer))
        except _DAMAGED as error:
            self._refuse(error)
        self._size += len(chunk)
        if self._size > self._limit:
            raise BodyTooLarge(f"Unpacked, the file is larger than {self._limit} bytes.")
        buffer[: len(chunk)] = chunk
        return len(chunk)

    def _refuse(self, error: Exception) -> NoReturn:
        ends = isinstance(error, EOFError) or "Truncated" in str(error)
        detail = (
            f"The {self._layer.name} of this file {'ends too early' if ends else 'is damaged'} behind the first "
            f"{self._size} bytes of the content: compress and upload the file again."
        )
        raise InvalidData(detail, faults=[Fault(place("byte", self._size), detail, "damaged_compression")]) from None


_DAMAGED = (OSError, EOFError, pa.ArrowInvalid, lzma.LZMAError, zlib.error, zipfile.BadZipFile)
