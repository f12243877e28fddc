"""A cache of requests by their heads: what is the same for all that begin with the same bytes is done once."""

import re
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from app.api.edge.middleware import LINE, Fields, Own, Process
from app.api.fast.head import OWN, split_own_fields
from app.base.errors import ValiantError

MAX_CACHED_HEADS = 1024
"""Heads remembered."""
NOWHERE = 0, 0


class PreparedRequest(NamedTuple):
    """A POST to a direct route, but for its body: what is the same for all that begin with this head is done once."""

    size: int
    """Bytes of the body."""
    lead: int
    """Bytes before its numbers."""
    process: Process

    def of(self, fields: Fields | None) -> "PreparedRequest":
        """With fields of its own, if the request has any."""
        if fields is None:
            return self
        return PreparedRequest(self.size, self.lead, partial(self.process, fields=fields))


Found = tuple[int, PreparedRequest, Fields | None]
"""The end of a head, what is prepared for it, and the fields of its own."""


class RecentHead(NamedTuple):
    """A head by the bytes around its one line that differs with every request; without such a line all are before."""

    before: bytes
    width: int
    """Bytes of the line."""
    after: bytes
    prepared: PreparedRequest

    def again(self, text: bytes | bytearray, start: int, stop: int) -> Found | None:
        """A head that differs in that line alone.

        Of a connection most heads are like the one before, and to compare takes less than to look them up.
        """
        before, width, after, prepared = self
        end = start + len(before)
        if not text.startswith(before, start, stop):
            return None
        if not width:
            return end, prepared, None
        line = LINE.fullmatch(text, end, end + width) if text.startswith(after, end + width, stop) else None
        return None if line is None else (end + width + len(after), prepared, _own(line))


NO_HEAD = RecentHead(b"\0", 0, b"", PreparedRequest(0, 0, lambda: (0, b"")))
"""That no request has."""


class HeadCache(dict[bytes, PreparedRequest | None]):
    """Prepared requests by all bytes of their heads. Heads that differ in their request's id or trace only share it.

    Those are not kept: each comes once, and what stays for a while has to be cleared away by the collector of garbage.
    """

    def __init__(self, find: Callable[[bytes], PreparedRequest | None]) -> None:
        super().__init__()
        self._find = find
        self._places: dict[int, tuple[int, int]] = {}
        """Length of a head → where its one line stands that differs with every request."""

    def __missing__(self, head: bytes) -> PreparedRequest | None:
        start, stop = self._places.get(len(head), NOWHERE)
        # A head without the line is known by all its bytes, so what follows the line is the end of one.
        line = LINE.fullmatch(head, start, stop)
        cached = None if line is None else self.get(head[:start] + head[stop:])
        if line is not None and cached is not None:
            return cached.of(_own(line))
        common, own_fields = split_own_fields(head)
        try:
            prepared = self._find(common)
        except ValiantError:
            return None  # the usual path refuses it, or looks its key up
        if not own_fields:
            return self._kept(head, prepared)
        if len(own_fields) == 1 and prepared is not None and (line := OWN.search(head)) is not None:
            self._kept(common, prepared)
            self._places[len(head)] = line.span()
        return prepared and prepared.of(Own.of(own_fields))

    def recent(self, head: bytes) -> RecentHead:
        """For the head after this one, which was found."""
        if (cached := self.get(head)) is not None:
            return RecentHead(head, 0, b"", cached)
        start, stop = self._places.get(len(head), NOWHERE)
        shared = self.get(head[:start] + head[stop:])
        return NO_HEAD if shared is None else RecentHead(head[:start], stop - start, head[stop:], shared)

    def _kept(self, head: bytes, prepared: PreparedRequest | None) -> PreparedRequest | None:
        if len(self) >= MAX_CACHED_HEADS:
            self.clear()
        self[head] = prepared
        return prepared


def _own(line: re.Match[bytes]) -> Fields:
    """Those of a match of `LINE`."""
    trace, request_id = line.groups()
    return request_id.decode() if request_id else None, trace.decode() if trace else None
