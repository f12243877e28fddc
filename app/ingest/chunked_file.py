"""A file that is made while it is read."""

import io
from collections.abc import Iterator
from typing import BinaryIO, cast

BUFFER_BYTES = 1 << 20


class ChunkedFile(io.RawIOBase):
    """The chunks one behind the other."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks, self._waiting = chunks, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # what BufferedReader hands in
        while not self._waiting:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._waiting = chunk
        part, self._waiting = self._waiting[: len(buffer)], self._waiting[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)


def open_chunks(chunks: Iterator[bytes]) -> BinaryIO:
    """A buffered file of these chunks."""
    return cast("BinaryIO", io.BufferedReader(ChunkedFile(chunks), BUFFER_BYTES))
