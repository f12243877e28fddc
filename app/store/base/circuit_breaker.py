"""A circuit breaker: after a few failures in a row calls are refused for a while."""

import time
from collections.abc import Callable
from threading import Lock


class Breaker:
    """Closed at first. `failures` in a row open it for `seconds`; then one caller at a time may try again."""

    def __init__(self, failures: int = 3, seconds: float = 5.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._allowed = failures
        self._seconds = seconds
        self._clock = clock
        self._lock = Lock()
        self._failures = 0
        self._closed_at = 0.0

    def allows(self) -> bool:
        """True if a call may be tried now. While the breaker is open, one call each `seconds` is let through."""
        with self._lock:
            if self._failures < self._allowed:
                return True
            if self._clock() < self._closed_at:
                return False
            self._closed_at = self._clock() + self._seconds
            return True

    def succeeded(self) -> None:
        with self._lock:
            self._failures = 0

    def failed(self) -> None:
        with self._lock:
            self._failures += 1
            self._closed_at = self._clock() + self._seconds
