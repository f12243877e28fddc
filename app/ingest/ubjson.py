"""Universal Binary JSON (UBJSON, draft 12) as Python values: what XGBoost saves models as.

Numbers are big-endian; arrays of one type of number become numpy arrays. Every size is checked against the bytes that
are left before memory is taken.

References: https://ubjson.org (draft 12); https://xgboost.readthedocs.io, "Introduction to Model IO".
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from app.base.errors import InvalidData
from app.base.faults import Fault

NUMBERS = {b"i": ">i1", b"U": ">u1", b"I": ">i2", b"l": ">i4", b"L": ">i8", b"d": ">f4", b"D": ">f8"}
MAX_DEPTH = 64
FIXED: dict[bytes, Any] = {b"Z": None, b"T": True, b"F": False}


def parse(content: bytes) -> Any:
    """The value that the bytes hold. Raises InvalidData."""
    reader = _Reader(content)
    return reader.value(reader.take(1), 0)


class _Reader:
    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, 0

    def take(self, size: int) -> bytes:
        end = self._at + size
        if size < 0 or end > len(self._content):
            raise malformed()
        content, self._at = self._content[self._at : end], end
        return content

    def value(self, kind: bytes, depth: int) -> Any:
        if kind in NUMBERS:
            return self._numbers(kind, 1)[0].item()
        if kind in FIXED:
            return FIXED[kind]
        if kind in {b"S", b"H"}:
            return self._text()
        if kind == b"C":
            return self.take(1).decode("latin-1")
        if depth >= MAX_DEPTH:
            raise malformed()
        if kind == b"[":
            return self._array(depth + 1)
        if kind == b"{":
            return self._object(depth + 1)
        raise malformed()

    def _numbers(self, kind: bytes, count: int) -> Any:
        return np.frombuffer(self.take(np.dtype(NUMBERS[kind]).itemsize * count), NUMBERS[kind])

    def _count(self, kind: bytes) -> int:
        count = self.value(kind, MAX_DEPTH)
        if type(count) is not int or not 0 <= count <= len(self._content):
            raise malformed()
        return count

    def _text(self) -> str:
        try:
            return self.take(self._count(self.take(1))).decode()
        except UnicodeDecodeError:
            raise malformed() from None

    def _head(self) -> tuple[bytes | None, int | None]:
        """The type that all parts have, and how many they are, as far as they are stated."""
        kind = None
        if self._next() == b"$":
            self.take(1)
            kind = self.take(1)
        if self._next() != b"#":
            if kind is not None:
                raise malformed()
            return None, None
        self.take(1)
        return kind, self._count(self.take(1))

    def _next(self) -> bytes:
        return self._content[self._at : self._at + 1]

    def _parts(self, end: bytes, read: Callable[[], None]) -> None:
        while self._next() != end:
            read()
        self.take(1)

    def _array(self, depth: int) -> Any:
        kind, count = self._head()
        if kind in NUMBERS and count is not None:
            return self._numbers(kind, count)
        items: list[Any] = []
        if count is None:
            self._parts(b"]", lambda: items.append(self.value(self.take(1), depth)))
        items += [self.value(kind or self.take(1), depth) for _ in range(count or 0)]
        return items

    def _object(self, depth: int) -> dict[str, Any]:
        kind, count = self._head()
        members: dict[str, Any] = {}

        def read() -> None:
            key = self._text()
            members[key] = self.value(kind or self.take(1), depth)

        if count is None:
            self._parts(b"}", read)
        for _ in range(count or 0):
            read()
        return members


def malformed() -> InvalidData:
    detail = "This is no whole JSON or UBJSON document."
    return InvalidData(f"The file is damaged, or no model. {detail}", faults=[Fault("", detail, "damaged_file")])
