"""Pulse of the event loop: a sign of life for whoever watches this process, and how late the loop was lately."""

import asyncio
import time
from contextlib import suppress
from pathlib import Path

BEAT_SECONDS = 1.0


class Pulse:
    """Beats of the event loop: when one comes late, so does everything that the loop waits for."""

    def __init__(self) -> None:
        self._lag_seconds = 0.0
        self._due_at: float | None = None

    @property
    def lag_seconds(self) -> float:
        """Time by which the loop was late, or is now; half as much counts a second later."""
        overdue = 0.0 if self._due_at is None else time.monotonic() - self._due_at
        return max(self._lag_seconds, overdue)

    async def run(self, file: Path | None) -> None:
        """Beat until cancelled. file: touched with each beat; a disk that hangs holds up a thread of its own."""
        while True:
            self._due_at = time.monotonic() + BEAT_SECONDS
            await asyncio.sleep(BEAT_SECONDS)
            self._lag_seconds = max(time.monotonic() - self._due_at, self._lag_seconds / 2)
            if file is not None:
                with suppress(OSError):  # a full disk lets nobody make a file, but touch it
                    await asyncio.to_thread(file.touch)
