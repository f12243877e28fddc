"""Text files in other encodings, read as UTF-8."""

import codecs
import io

from app.base.errors import InvalidData
from app.base.faults import Fault, place
from app.ingest.upload_options import ReadOptions

UTF8 = "utf-8"
READ_BYTES = 1 << 16
_MARKS = {codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
"""The longer one first, which begins like the shorter."""


def encoding_of(head: bytes, options: ReadOptions) -> str:
    """The encoding given; else by a byte order mark; else UTF-8."""
    marked = next((encoding for mark, encoding in _MARKS.items() if head.startswith(mark)), UTF8)
    return options.encoding or marked


class Transcoded(io.RawIOBase):
    """A file in some encoding as UTF-8, decoded while it is read."""

    def __init__(self, raw: io.RawIOBase | io.BytesIO, encoding: str) -> None:
        self._raw, self._encoding = raw, encoding
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._waiting, self._line, self._ended = b"", 1, False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # what BufferedReader hands in
        while not self._waiting and not self._ended:
            raw = self._raw.read(READ_BYTES) or b""
            self._ended = not raw
            self._waiting = self._decoded(raw).encode()
        chunk, self._waiting = self._waiting[: len(buffer)], self._waiting[len(buffer) :]
        buffer[: len(chunk)] = chunk
        return len(chunk)

    def _decoded(self, raw: bytes) -> str:
        try:
            text = self._decoder.decode(raw, final=not raw)
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode(self._encoding, "replace")
            where = place("line", self._line + before.count("\n"))
            detail = f"This line is not valid {self._encoding}: give the encoding of the file, or save it as UTF-8."
            raise InvalidData(faults=[Fault(where, detail, "not_in_encoding")]) from None
        self._line += text.count("\n")
        return text
