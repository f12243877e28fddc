"""Which version is meant, remembered for a moment."""

import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import NamedTuple

from app.services.single_flight import SingleFlight
from app.store.models import Pointer
from app.store.work import WorkFactory

MOST = 10_000
"""Pointers remembered. Only names that exist are, so this is many models."""


class Wanted(NamedTuple):
    """A version, an alias, or neither: then `champion` if it is set, else the newest."""

    model: str
    version: int | None = None
    alias: str | None = None


class Pointers:
    """A pointer serves for `seconds` from before it was asked for: what was deleted is gone by then."""

    def __init__(self, work: WorkFactory, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._work = work
        self._seconds = seconds
        self._clock = clock
        self._flights: SingleFlight[Wanted, Pointer] = SingleFlight(2, "pointers")
        self._known: dict[Wanted, tuple[Pointer, float]] = {}

    def fresh(self, wanted: Wanted) -> Pointer | None:
        pointer, until = self._known.get(wanted, (None, 0.0))
        return pointer if self._clock() < until else None

    def fetch(self, wanted: Wanted) -> Future[Pointer]:
        """From the database. The outcome may be ModelNotFound, VersionNotFound or AliasNotFound."""
        return self._flights.join(wanted, lambda: self._read(wanted))

    def _read(self, wanted: Wanted) -> Pointer:
        if pointer := self.fresh(wanted):  # landed between the caller's look and now
            return pointer
        until = self._clock() + self._seconds
        with self._work() as w:
            pointer = w.models.pointer(wanted.model, version=wanted.version, alias=wanted.alias)
        if len(self._known) >= MOST:
            self._known.clear()
        self._known[wanted] = pointer, until
        return pointer
