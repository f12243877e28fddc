"""A cache of requests by their heads: what is the same for all that begin with the same bytes is done once."""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, NamedTuple

from app.api.edge.middleware import Own, Whole
from app.api.fast.head import OWN, apart
from app.errors import ValiantError

MOST = 1024
"""Heads remembered."""


class PreparedRequest(NamedTuple):
    """A POST to a direct route, but for its body: what is the same for all that begin with this head is done once."""

    size: int
    """Bytes of the body."""
    lead: int
    """Bytes before its numbers."""
    process: Callable[..., Whole | Coroutine[Any, Any, Whole]]
    """To a body, as `CachedRequest.process`."""

    def of(self, own: Own | None) -> "PreparedRequest":
        """With the fields of one request."""
        return PreparedRequest(self.size, self.lead, partial(self.process, own=own))


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
        found = self._at_a_known_place(head)
        if found is not None:
            return found
        rest, own = apart(head)
        try:
            found = self._find(rest)
        except ValiantError:
            return None  # the usual path refuses it, or looks its key up
        if not own:
            return self._kept(head, found)
        if len(own) == 1 and found is not None and (line := OWN.search(head)) is not None:
            self._kept(rest, found)
            self._places[len(head)] = line.span()
        return found and found.of(Own.of(own))

    def _kept(self, head: bytes, found: PreparedRequest | None) -> PreparedRequest | None:
        if len(self) >= MOST:
            self.clear()
        self[head] = found
        return found

    def _at_a_known_place(self, head: bytes) -> PreparedRequest | None:
        """The request of a head that is known but for one line, which stands where it stood in the last such head."""
        start, stop = self._places.get(len(head), (0, 0))
        if not start or head.find(b"\r\n", start + 2) != stop:
            return None
        own = Own.of_line(head[start:stop])
        found = None if own is None else self.get(head[:start] + head[stop:])
        return found and found.of(own)
