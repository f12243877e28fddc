"""Pointers to the version that serves a model: read from the database and kept for a moment, or longer in an outage."""

import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

import structlog

from app.base.errors import RevisionNotReached, ValiantError
from app.base.project_context import PROJECT
from app.ml.contract.model_reference import VersionRef
from app.services.predictions.database_outage import COLD_SECONDS, Outage
from app.services.threads.single_flight import SingleFlight, within
from app.store.base.database_errors import to_log
from app.store.models.pointer import ANY, CHAMPION, Freshness, Pointer

if TYPE_CHECKING:
    from app.store.unit_of_work import WorkFactory

log = structlog.get_logger(__name__)
MAX_POINTERS = 10_000
"""Pointers remembered. Only names that exist are, so this is many models."""
LATE_SECONDS = 0.04
"""A renewal that takes longer no longer holds up a request that an older pointer can serve."""


_Own = tuple[int, VersionRef]
"""A reference as a project means it; the id of the project is the number, which Python hashes in no time."""


def _own(reference: VersionRef) -> _Own:
    return PROJECT.get().int, reference


class ModelUnavailable(ValiantError):
    code, status, title = "model_unavailable", 503, "The model of the folder is not served"
    remedy = "Correct its file as the detail states; `valiant serve` tries it again when it has changed."


class Found(NamedTuple):
    pointer: Pointer
    stale_seconds: int | None = None
    """Age of a pointer that could not be renewed; None for a fresh one."""


class _Known(NamedTuple):
    found: Found
    read_at: float


class Pointers:
    """A pointer is fresh for `seconds` from before it was read, and usable for `stale_seconds` in an outage.

    A change made by this process is seen by every read that begins afterwards: each change starts a new generation,
    and a read that began in an older one is neither joined nor kept.
    """

    def __init__(
        self,
        work: "WorkFactory",
        seconds: float,
        stale_seconds: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._work = work
        self._seconds = seconds
        self._stale_seconds = stale_seconds
        self._clock = clock
        self._flights: SingleFlight[tuple[_Own, Freshness, int], Pointer] = SingleFlight(2, "pointers")
        self._known: dict[_Own, _Known] = {}
        self._lock = Lock()
        self._generation = 0
        self._attempt: Future[Pointer] | None = None
        self.outage = Outage(clock)

    def at_hand(self, reference: VersionRef, demand: Freshness = ANY) -> Found | None:
        """A fresh pointer, or in an outage an older one, that reaches the demand."""
        cached = self._known.get(_own(reference))
        if cached is None or not demand.reached(cached.found.pointer):
            return None
        if self._clock() - cached.read_at < self._seconds:
            return cached.found
        if self.outage.since is None:
            return None
        stale = self._stale(reference, demand)
        if stale is not None:
            self._retry(reference)
        return stale

    async def current(self, reference: VersionRef, demand: Freshness = ANY) -> Found:
        """The version as of `at_hand`, else from the database; older than demanded where newer ones were deleted.

        Raises ModelNotFound, VersionNotFound, AliasNotFound, RevisionNotReached, DatabaseUnavailable,
        DatabaseNotPrepared.
        """
        current = self.at_hand(reference, demand) or await self._renewed(reference, demand)
        if not demand.reached(current.pointer):  # that read may have begun before the move that the caller knows of
            current = await self._renewed(reference, demand)
        if current.pointer.revision < demand.revision:
            raise RevisionNotReached(f"The alias is at revision {current.pointer.revision}.")
        return current

    async def demand_database(self, reference: VersionRef) -> None:
        """Raises DatabaseUnavailable or DatabaseNotPrepared while the database is away."""
        await self.current(reference)
        if not self.outage.seconds_left():
            raise self.outage.problem

    def fetch(self, reference: VersionRef, demand: Freshness = ANY) -> Future[Pointer]:
        """From the database. The outcome may be ModelNotFound, VersionNotFound or AliasNotFound."""
        generation = self._generation
        return self._flights.join(
            (_own(reference), demand, generation), lambda: self._read(reference, demand, generation)
        )

    def alias_moved(self, model: str, alias: str) -> None:
        """Read anew what the move changed, once it is committed."""
        changed = [VersionRef(model, alias=alias), *([VersionRef(model)] if alias == CHAMPION else [])]
        self._forget({*map(_own, changed)}.__contains__)
        for reference in changed:
            with suppress(Exception):  # the move is done; the next read tries again
                self.fetch(reference).result(COLD_SECONDS)

    def version_reported(self, model: str, version: int) -> None:
        """Predict with this version from now on, or a newer one, where the newest predicts."""
        newest = _own(VersionRef(model))
        cached = self._known.get(newest)
        if cached is None or not Freshness(version=version).reached(cached.found.pointer):
            self._forget({newest}.__contains__)

    def changed(self, model: str, version: int | None = None) -> None:
        """Forget all versions of a model, or one: they were deleted, or clusters have other names."""
        self._forget(
            lambda reference: (
                reference == _own(reference[1])
                and reference[1].model == model
                and version in {None, self._known[reference].found.pointer.version}
            )
        )

    def seconds_left(self) -> float:
        """Seconds that the pointer read last can still serve without the database; 0 if there is none."""
        newest = max((cached.read_at for cached in list(self._known.values())), default=None)
        return 0.0 if newest is None else max(0.0, self._stale_seconds - (self._clock() - newest))

    def _forget(self, changed: Callable[[_Own], bool]) -> None:
        with self._lock:
            self._generation += 1
            for reference in list(filter(changed, self._known)):
                del self._known[reference]

    def _read(self, reference: VersionRef, demand: Freshness, generation: int) -> Pointer:
        cached, began = self._known.get(_own(reference)), self._clock()
        if cached is not None and began - cached.read_at < self._seconds and demand.reached(cached.found.pointer):
            return cached.found.pointer  # landed between the caller's look and now
        try:
            with self._work() as w:
                pointer = w.aliases.pointer(reference.model, version=reference.version, alias=reference.alias)
        except ValiantError:
            self._land(reference, None, generation)
            raise
        except Exception as error:
            self.outage.begin(error)
            log.warning("pointer_not_read", **to_log(error))
            raise
        self._land(reference, _Known(Found(pointer), began), generation)
        return pointer

    def _land(self, reference: VersionRef, read: _Known | None, generation: int) -> None:
        self.outage.end()
        with self._lock:
            if generation != self._generation:
                return
            self._known.pop(_own(reference), None)
            if read is not None:
                if len(self._known) >= MAX_POINTERS:
                    self._known.clear()
                self._known[_own(reference)] = read

    def _stale(self, reference: VersionRef, demand: Freshness) -> Found | None:
        cached = self._known.get(_own(reference))
        if cached is None or not demand.reached(cached.found.pointer):
            return None
        age = self._clock() - cached.read_at
        return Found(cached.found.pointer, int(age)) if age < self._stale_seconds else None

    def _retry(self, reference: VersionRef) -> Future[Pointer] | None:
        """In an outage: another attempt, one at a time, if it is due."""
        with self._lock:
            if (self._attempt is not None and not self._attempt.done()) or not self.outage.retries():
                return None
        self._attempt = self.fetch(reference)
        return self._attempt

    async def _renewed(self, reference: VersionRef, demand: Freshness) -> Found:
        """From the database; what is known already if that takes long or fails."""
        if self.outage.seconds_left():
            flight, patience = self.fetch(reference, demand), self.outage.seconds_left()
        else:
            attempt = self._retry(reference)
            if attempt is None:
                raise self.outage.problem
            flight, patience = attempt, COLD_SECONDS
        if self._stale(reference, demand) is not None:
            patience = LATE_SECONDS
        if not await within(flight, patience):
            self.outage.begin()
        elif flight.exception() is None or isinstance(flight.exception(), ValiantError):
            return Found(flight.result())
        stale = self._stale(reference, demand)
        if stale is None:
            raise self.outage.problem
        return stale
