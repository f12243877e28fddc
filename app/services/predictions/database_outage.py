"""Outage detection: whether the database responds, by the reads of pointers; a circuit breaker for predictions."""

from collections.abc import Callable

import structlog

from app.base.errors import DatabaseUnavailable
from app.store.base.database_errors import DatabaseNotPrepared, to_log, to_problem

COLD_SECONDS, RETRY_SECONDS = 2.0, 0.5
"""Seconds that a request without a pointer waits for the database; pause between attempts while it is away."""
log = structlog.get_logger(__name__)


class Outage:
    """Begins when a read fails or is late, ends when one comes back."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._retry_at = 0.0
        self._error: Exception | None = None
        self.since: float | None = None

    @property
    def problem(self) -> DatabaseNotPrepared | DatabaseUnavailable:
        """The problem that a request which needs the database receives."""
        return to_problem(self._error)

    def begin(self, error: Exception | None = None) -> None:
        """error: in which the read ended; otherwise it is only late."""
        self._error = error or self._error
        if self.since is None:
            self.since = self._clock()
            if error is None:
                log.info("database_away", failed=False)
            else:
                log.warning("database_away", failed=True, **to_log(error))

    def end(self) -> None:
        if self.since is not None:
            log.info("database_back", seconds=round(self._clock() - self.since, 3))
        self.since = self._error = None

    def seconds_left(self) -> float:
        """Seconds that a request without a pointer may wait; 0 once the database is known to be away."""
        if self.since is None:
            return COLD_SECONDS
        return 0.0 if self._error else max(0.0, COLD_SECONDS - (self._clock() - self.since))

    def retries(self) -> bool:
        """True if another attempt is due; the pause begins anew if so."""
        now = self._clock()
        if now < self._retry_at:
            return False
        self._retry_at = now + RETRY_SECONDS
        return True
