"""A table as one JSON text, read row by row: `[{"a": 1}, …]`, or `{"columns": ["a"], "data": [[1], …]}`.

Objects of several lines each, one behind the other, are rows, too.
"""

import io
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from typing import Any, BinaryIO

import orjson

from app.base.faults import Fault, place
from app.ingest.reader_result import refuse

READ = 1 << 18
"""Characters read at a time."""
MAX_VALUE_LENGTH = 64 << 20
"""Characters of one value."""
_BEGIN = re.compile(rb'[\xef\xbb\xbf \t\r\n]*(?:\[\s*[{\]]|\{\s*"columns"\s*:|\{[ \t]*[\r\n])')
_SPLIT = re.compile(r'\{\s*"columns"\s*:')
_SPACE = re.compile(r"[ \t\r\n]*")


_BEHIND = "Something follows the object of `columns` and `data`: upload a file that ends with it."
_LONG_NUMBER = re.compile(rb"[0-9]{16}")


def load_exactly(text: bytes) -> Any:
    """The value of a JSON text, with whole numbers of any length. Raises orjson.JSONDecodeError."""
    value = orjson.loads(text)  # strict; but it rounds whole numbers beyond 64 bits
    if _LONG_NUMBER.search(text):
        with suppress(ValueError):  # of more digits than Python takes: rounded
            return json.loads(text)
    return value


def is_document(head: bytes) -> bool:
    """True if a file that begins so is one table in one JSON text, and not one row a line."""
    return _BEGIN.match(head) is not None


def texts(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The JSON text of every row by its number, from 1. Raises InvalidData where the text is not readable."""
    text = _Text(file)
    if text.next() == "{" and text.matches(_SPLIT):
        yield from _split(text)
    else:
        for number, row in text.sequence():
            yield number, row.encode("utf-8", "surrogateescape")
    if text.next():
        refuse([Fault("", _BEHIND, "malformed_json")])


def _split(text: "_Text") -> Iterator[tuple[int, bytes]]:
    columns: list[str] = []
    for name in text.members():
        if name == "columns":
            columns = _names(text.value(0))
        elif name == "data":
            for number, row in text.elements():
                yield number, _object(number, columns, row)
        else:
            text.value(0)


def _names(text: str) -> list[str]:
    names = _loaded(text, 0)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or len({*names}) < len(names):
        refuse([Fault(place("columns"), "The columns are an array of strings that all differ.", "bad_name")])
    return names


def _loaded(text: str, number: int) -> Any:
    try:
        return load_exactly(text.encode("utf-8", "surrogateescape"))
    except orjson.JSONDecodeError:
        refuse([_malformed(number)])


def _object(number: int, columns: list[str], row: str) -> bytes:
    values = _loaded(row, number)
    if not isinstance(values, list) or len(values) != len(columns):
        detail = (
            f"Each row is an array with a value for each of the {len(columns)} columns, which stand before the data."
        )
        refuse([Fault(place("row", number), detail, "ragged_row")])
    named = dict(zip(columns, values, strict=True))
    try:
        return orjson.dumps(named)
    except TypeError:  # a whole number beyond 64 bits
        return json.dumps(named).encode()


def _malformed(number: int) -> Fault:
    return Fault(
        place("row", number) if number else "",
        "The file is not JSON here, or ends too early: write it anew, and upload it whole.",
        "malformed_json",
    )


class _Text:
    """A JSON text that is read value by value."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = io.TextIOWrapper(file, "utf-8-sig", errors="surrogateescape", newline="")
        self._decode = json.JSONDecoder().raw_decode
        self._buffer, self._at = "", 0

    def next(self) -> str:
        """The next character that is no space; it is not taken. Empty at the end."""
        while True:
            self._at = _SPACE.match(self._buffer, self._at).end()  # type: ignore[union-attr]  # it matches nothing, too
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if not self._more():
                return ""

    def matches(self, pattern: re.Pattern[str]) -> bool:
        """True if the text goes on like that."""
        return pattern.match(self._buffer, self._at) is not None

    def sequence(self) -> Iterator[tuple[int, str]]:
        """The texts of the values up to the end, and of those in arrays, by their number."""
        number = 0
        while begin := self.next():
            if begin != "[":
                number += 1
                yield number, self.value(number)
                continue
            for number, element in self.elements(number + 1):  # noqa: B020  the count goes on
                yield number, element

    def elements(self, first: int = 1) -> Iterator[tuple[int, str]]:
        """The texts of the values in an array, by their number."""
        self._take("[", first)
        for number in count(first):
            if number == first and self.next() == "]":
                break
            yield number, self.value(number)
            if self.next() == "]":
                break
            self._take(",", number)
        self._take("]", 0)

    def members(self) -> Iterator[str]:
        """The names of the members of an object; the caller takes the value of each."""
        self._take("{", 0)
        while True:
            name = json.loads(self.value(0))
            self._take(":", 0)
            yield name
            if self.next() == "}":
                self._take("}", 0)
                return
            self._take(",", 0)

    def value(self, number: int) -> str:
        """The text of the next value."""
        self.next()
        while True:
            try:
                _, end = self._decode(self._buffer, self._at)
            except (ValueError, RecursionError):
                end = None
            if end is not None and (end < len(self._buffer) or self._buffer[end - 1] in '}]"'):
                break
            if len(self._buffer) - self._at > MAX_VALUE_LENGTH or not self._more():  # what is cut may go on
                refuse([_malformed(number)])
        text, self._at = self._buffer[self._at : end], end
        return text

    def _take(self, symbol: str, number: int) -> None:
        if self.next() != symbol:
            refuse([_malformed(number)])
        self._at += 1

    def _more(self) -> bool:
        chunk = self._file.read(max(READ, len(self._buffer) - self._at))
        self._buffer, self._at = self._buffer[self._at :] + chunk, 0
        return bool(chunk)
