"""Starts again what ends or freezes, for as long as `valiant up` runs."""

import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from app.disk_space import Reserve
from app.embedded.child_process import Child

LOOK_SECONDS = 0.25
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
STABLE_SECONDS = 60.0  # alive for so long, a child's earlier deaths are forgotten


@dataclass
class Silence:
    """Time since a child has touched its file.

    Only time in which we looked counts: when the machine or this process slept, the child did, too.
    """

    child: Child
    seconds: float = 0.0
    looked: float = 0.0
    beaten: int | None = None

    def look(self, now: float) -> float:
        before, self.beaten = self.beaten, self.child.beaten
        alike = self.beaten is not None and self.beaten == before
        self.seconds = self.seconds + min(now - self.looked, 2 * LOOK_SECONDS) if alike else 0.0
        self.looked = now
        return self.seconds


class Watched:
    def __init__(self, child: Child, reserve: Reserve, patience: float) -> None:
        """patience: seconds of silence after which a child that has a heartbeat is replaced."""
        self._child, self._reserve, self._patience = child, reserve, patience
        self._silence = Silence(child)
        self._pause = FIRST_PAUSE
        self._since = 0.0
        self._due: float | None = None
        """When to start it again, if it is dead."""

    def look(self, now: float) -> None:
        if self._child.alive:
            self._check(now)
        elif self._due is None:
            report(f"{self._child.name} ended by itself; starting it again in {self._pause} s.")
            self._due = now + self._pause
        elif now >= self._due:
            self._start_again(now)

    def _check(self, now: float) -> None:
        if now - self._since > STABLE_SECONDS:
            self._pause = FIRST_PAUSE
        if self._silence.look(now) > self._patience:
            report(
                f"{self._child.name} is frozen: it has given no sign of life for {self._patience:g} s. It is replaced."
            )
            self._child.kill()
            self._start_again(now)

    def _start_again(self, now: float) -> None:
        if self._reserve.release():
            report(f"The disk of {self._reserve.folder} is full: the reserved room is given to the database.")
        with suppress(OSError):  # a full disk: the child is still dead at the next look
            self._child.spawn()
        self._since, self._due, self._pause = now, None, min(2 * self._pause, LONGEST_PAUSE)


def keep(children: Sequence[Child], reserve: Reserve, *, patience: float) -> None:
    """Start again whatever ends or freezes, for ever, waiting longer each time it does not last."""
    watched = [Watched(child, reserve, patience) for child in children]
    while True:
        for each in watched:
            each.look(time.monotonic())
        reserve.restore()
        time.sleep(LOOK_SECONDS)


def report(sentence: str) -> None:
    with suppress(OSError):  # the terminal may be a file on a full disk
        print(sentence, file=sys.stderr, flush=True)
