"""Frames between a supervisor and its trainer: a letter, a length, the bytes.

supervisor → trainer    REQUEST (JSON), then of each model BLOB (a chunk of it) …, END, SEEN (a chunk of the hashes of
                        its training rows) …, END, REFERENCE (a chunk of its distributions) …, END,
                        then UNIT (as below) of earlier attempts …, END,
                        then, if earlier attempts have written some of the result, CHUNK (Arrow IPC stream) …, END,
                        then of each dataset CHUNK …, END
trainer → supervisor    PROGRESS (JSON), CHUNK (a `Place`, then an Arrow IPC stream), UNIT (parts: JSON, payload) and
                        CHECKPOINT (parts: JSON, model, hashes, distributions) …,
                        then FAILURE (a problem as JSON),
                        or RESULT (JSON), BLOB (a chunk of the model) …, SEEN …, REFERENCE …, END
"""

import struct
from collections.abc import Iterator
from typing import IO, NamedTuple

REQUEST, CHUNK, END, PROGRESS, FAILURE, RESULT = b"R", b"C", b"E", b"P", b"F", b"S"
BLOB, SEEN, REFERENCE = b"B", b"N", b"D"

UNIT, CHECKPOINT = b"U", b"K"

_HEAD = struct.Struct(">cQ")
_LENGTH = struct.Struct(">Q")
_PLACE = struct.Struct(">QQQ")


class Place(NamedTuple):
    """Place of a chunk in the table that a job makes."""

    seq: int
    first_row: int
    rows: int


def write_chunk(stream: IO[bytes], place: Place, payload: bytes | memoryview) -> None:
    write(stream, CHUNK, _PLACE.pack(*place) + bytes(payload))


def read_chunk(payload: bytes) -> tuple[Place, bytes]:
    return Place(*_PLACE.unpack_from(payload)), payload[_PLACE.size :]


def join(*parts: bytes) -> bytes:
    """One payload of several parts."""
    return b"".join(_LENGTH.pack(len(part)) + part for part in parts)


def split(payload: bytes) -> list[bytes]:
    """The parts of a payload."""
    parts, at_byte = list[bytes](), 0
    while at_byte < len(payload):
        (length,) = _LENGTH.unpack_from(payload, at_byte)
        parts.append(payload[at_byte + _LENGTH.size : at_byte + _LENGTH.size + length])
        at_byte += _LENGTH.size + length
    return parts


class Frame(NamedTuple):
    kind: bytes
    payload: bytes


def write(stream: IO[bytes], kind: bytes, payload: bytes | memoryview = b"") -> None:
    stream.write(_HEAD.pack(kind, len(payload)))
    stream.write(payload)
    stream.flush()


def read(stream: IO[bytes]) -> Frame:
    """The next frame. Raises EOFError when the other side is gone."""
    kind, length = _HEAD.unpack(_exactly(stream, _HEAD.size))
    return Frame(kind, _exactly(stream, length))


def _exactly(stream: IO[bytes], size: int) -> bytes:
    chunk = stream.read(size)
    if len(chunk) < size:
        raise EOFError
    return chunk


class Assembler:
    """Frames read from the chunks that a pipe gives."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        """The frames that are complete with `chunk`."""
        self._rest += chunk
        while len(self._rest) >= _HEAD.size:
            kind, length = _HEAD.unpack_from(self._rest)
            end = _HEAD.size + length
            if len(self._rest) < end:
                return
            yield Frame(kind, bytes(memoryview(self._rest)[_HEAD.size : end]))
            del self._rest[:end]
