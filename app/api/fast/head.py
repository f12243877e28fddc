"""The head of a request: its first line and its headers, as the server's own parser reads them."""

import re
from typing import NamedTuple

import httptools

END = b"\r\n\r\n"
MAX_HEAD_BYTES = 2048


class Head(NamedTuple):
    """Head of a POST that keeps its connection, and gives the length of its body."""

    url: bytes
    headers: list[tuple[bytes, bytes]]
    """Names in lower case."""
    size: int
    """Bytes of the body."""


OWN = re.compile(
    rb"\r\n([Tt]race(?:parent|state)|[Xx]-[Rr]equest-[Ii][Dd]|[Xx]-[Bb]3-[A-Za-z0-9-]+|[Xx]-[Ff]orwarded-[A-Za-z-]+)"
    rb":([\x20-\x7e]*)(?=\r\n[^ \t])"
)
"""Lines that differ with every request or caller. Others of these names, oddly written ones, stay where they are."""


def split_own_fields(text: bytes) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    """A head without the lines of `OWN`, and their names and values."""
    parts = OWN.split(text)
    if len(parts) == 1:
        return text, []
    fields = [(name.lower(), value.strip(b" ")) for name, value in zip(parts[1::3], parts[2::3], strict=True)]
    return b"".join(parts[::3]), fields


UNUSUAL = frozenset({b"content-encoding", b"expect", b"transfer-encoding", b"upgrade"})
"""Headers that request more than a response to a body."""


def read_head(text: bytes) -> Head | None:
    """None for any other head, and for what is more, or less, than one."""
    received = _ParsedHead()
    parser = httptools.HttpRequestParser(received)
    try:
        parser.feed_data(text[:-1])
        early = received.complete
        parser.feed_data(text[-1:])
    except (httptools.HttpParserError, httptools.HttpParserUpgrade):
        return None
    sizes = [value for name, value in received.headers if name == b"content-length"]
    plain = parser.get_method() == b"POST" and parser.get_http_version() == "1.1" and parser.should_keep_alive()
    usual = UNUSUAL.isdisjoint(name for name, _ in received.headers)
    if early or not (received.complete and plain and usual) or len(sizes) != 1 or not sizes[0].isdigit():
        return None
    return Head(received.url, received.headers, int(sizes[0]))


class _ParsedHead:
    """The fields that the parser reports."""

    def __init__(self) -> None:
        self.url = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.complete = False

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self.complete = True
