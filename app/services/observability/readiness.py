"""The servers that a process depends on: each is checked within a deadline and in a thread of its own."""

import asyncio
from concurrent.futures import Future

import structlog
from celery import Celery

from app.messaging.queue import reachable
from app.schemas.health import Check
from app.services.observability.database_access import DatabaseAccess
from app.services.predictions.pointer_cache import Pointers
from app.services.threads.single_flight import SingleFlight, within
from app.store.base.database_errors import to_log
from app.store.models.model_cache import Cache
from app.store.unit_of_work import WorkFactory
from migrations.schema_revision import current

CHECK_SECONDS = 0.5
"""A server that has not responded by then does not respond."""
STARVED_CHECK_SECONDS = 2.0
"""The same where this process has been late itself."""
LATE_SECONDS = CHECK_SECONDS
"""An event loop that is late by so much is starved."""
log = structlog.get_logger(__name__)


class Dependencies:
    """Polls join a check that is in progress, so a server that hangs holds one thread, however often it is checked."""

    def __init__(self, work: WorkFactory, cache: Cache, celery: Celery, pointers: Pointers) -> None:
        self._pointers = pointers
        self._access = DatabaseAccess(work)
        self._calls = {
            "database": lambda: current(work.engine),
            "access": self._access.check,
            "cache": cache.reachable,
            "broker": lambda: reachable(celery),
        }
        self._flights: SingleFlight[str, bool] = SingleFlight(len(self._calls), "readiness")
        self._late = True
        """The database did not respond in time to the check before, or there was none."""

    async def check(self, lag_seconds: float = 0.0) -> list[Check]:
        """All of them, `CHECK_SECONDS` from now at the latest, or later if the event loop has been late itself.

        lag_seconds: time by which it was.
        """
        late_before, seconds = self._late, STARVED_CHECK_SECONDS if lag_seconds > LATE_SECONDS else CHECK_SECONDS
        flights = {name: self._flights.join(name, call) for name, call in self._calls.items()}
        await asyncio.gather(*(within(flight, seconds) for flight in flights.values()))
        self._late = not flights["database"].done()
        others = [
            Check(name=name, ok=_holds(flights[name]), required=False, detail=_trouble(flights[name], seconds))
            for name in ("cache", "broker")
        ]
        return [*self._database(flights["database"], seconds, late_before=late_before), *others]

    def _database(self, flight: Future[bool], seconds: float, *, late_before: bool) -> list[Check]:
        """The database itself, its schema, and what it lets the service do, as of the last look at that. None is
        required while warm models can predict without them, nor where the database is late for the first time: one slow
        moment takes no process out of a load balancer.
        """
        if flight.done() and flight.exception() is None:
            detail = None if flight.result() else "The schema is not the one of this release: run `valiant migrate`."
            fault = self._access.fault if flight.result() else "Unknown until the schema is the one of this release."
            return [
                Check(name="database", ok=True, required=True),
                Check(name="schema", ok=flight.result(), required=True, detail=detail),
                Check(name="access", ok=fault is None, required=flight.result(), detail=fault),
            ]
        left, trouble = self._pointers.seconds_left(), _trouble(flight, seconds)
        late_once = not (flight.done() or late_before)
        if left:
            trouble = f"{trouble} Warm models predict for up to {left:.0f} s more."
        elif late_once:
            trouble = f"{trouble} This process is not ready if that happens again at the next check."
        return [
            Check(name="database", ok=False, required=not (left or late_once), detail=trouble),
            *(
                Check(name=name, ok=False, required=False, detail="Unknown while the database is away.")
                for name in ("schema", "access")
            ),
        ]


def _holds(flight: Future[bool]) -> bool:
    return flight.done() and flight.exception() is None and flight.result()


def _trouble(flight: Future[bool], seconds: float) -> str | None:
    if _holds(flight):
        return None
    error = flight.exception() if flight.done() else None
    reason = f"It cannot be reached ({type(error).__name__})." if error else "It cannot be reached."
    if not flight.done():
        reason = f"It did not respond within {seconds} s."
    log.warning("not_ready", **{"reason": reason} | (to_log(error) if error else {}))
    return reason
