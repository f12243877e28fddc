"""A cache of requests by their heads: what is the same for all that begin with the same bytes is done once."""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, NamedTuple

from app.api.edge.middleware import LINE, Own, Whole
from app.api.fast.head import OWN, apart
from app.errors import ValiantError

MOST = 1024
"""Heads remembered."""
NOWHERE = 0, 0


class PreparedRequest(NamedTuple):
    """A POST to a direct route, but for its body: what is the same for all that begin with this head is done once."""

    size: int
    """Bytes of the body."""
    lead: int
    """Bytes before its numbers."""
    process: Callable[..., Whole | Coroutine[Any, Any, Whole]]
    """To a body, as `CachedRequest.process`."""

    def of(self, own: tuple[str | None, str | None]) -> "PreparedRequest":
        """With the fields of one request, as `Own`."""
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
        start, stop = self._places.get(len(head), NOWHERE)
        # A head without the line is known by all its bytes, so what follows the line is the end of one.
        line = LINE.fullmatch(head, start, stop)
        known = None if line is None else self.get(head[:start] + head[stop:])
        if line is not None and known is not None:
            trace, given = line.groups()
            return known.of((given.decode() if given else None, trace.decode() if trace else None))
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
