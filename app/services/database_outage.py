"""Outage detection: whether the database responds, by the reads of pointers; a circuit breaker for predictions."""

from collections.abc import Callable

import structlog

COLD_SECONDS, RETRY_SECONDS = 2.0, 0.5
"""Seconds that a request without a pointer waits for the database; pause between attempts while it is away."""
log = structlog.get_logger(__name__)


class Outage:
    """Begins when a read fails or is late, ends when one comes back."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._retry_at = 0.0
        self._failed = False
        self.since: float | None = None

    def begin(self, *, failed: bool) -> None:
        """failed: the read ended in an error; otherwise it is only late."""
        self._failed |= failed
        if self.since is None:
            self.since = self._clock()
            (log.warning if failed else log.info)("database_away", failed=failed)

    def end(self) -> None:
        if self.since is not None:
            log.info("database_back", seconds=round(self._clock() - self.since, 3))
        self.since, self._failed = None, False

    def seconds_left(self) -> float:
        """Seconds that a request without a pointer may wait; 0 once the database is known to be away."""
        if self.since is None:
            return COLD_SECONDS
        return 0.0 if self._failed else max(0.0, COLD_SECONDS - (self._clock() - self.since))

    def retries(self) -> bool:
        """True if another attempt is due; the pause begins anew if so."""
        now = self._clock()
        if now < self._retry_at:
            return False
        self._retry_at = now + RETRY_SECONDS
        return True
