"""A cache of requests by their heads: what is the same for all that begin with the same bytes is done once."""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, NamedTuple

from app.api.edge.middleware import Own, Whole
from app.api.fast.head import apart
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


class HeadCache(dict[bytes, PreparedRequest | None]):
    """Prepared requests by all bytes of their heads. Heads that differ in their request's id or trace only share it.

    Those are not kept: each comes once, and what stays for a while has to be cleared away by the collector of garbage.
    """

    def __init__(self, find: Callable[[bytes], PreparedRequest | None]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, head: bytes) -> PreparedRequest | None:
        rest, own = apart(head)
        try:
            found = self._find(rest)
        except ValiantError:
            return None  # the usual path refuses it, or looks its key up
        if own:
            return found and PreparedRequest(found.size, found.lead, partial(found.process, own=Own.of(own)))
        if len(self) >= MOST:
            self.clear()
        self[head] = found
        return found
