"""Starts again what ends or freezes, for as long as `valiant up` runs."""

import sys
import time
from collections.abc import Sequence
from contextlib import suppress

from app.embedded.child_process import Child
from app.processes.disk_space import Reserve

LOOK_SECONDS = 0.25
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
STABLE_SECONDS = 60.0  # alive for so long, a child's earlier deaths are forgotten


class Watched:
    def __init__(self, child: Child, reserve: Reserve, seconds: float) -> None:
        """seconds: time without a sign of life after which a child that computes nothing is replaced."""
        self._child, self._reserve, self._seconds = child, reserve, seconds
        self._patience = child.patience(seconds)
        self._seen_at: int | None = None
        self._pause = FIRST_PAUSE
        self._since = 0.0
        self._due: float | None = None
        """When to start it again, if it is dead."""

    def look(self, now: float) -> None:
        if self._child.alive:
            self._check(now)
        elif self._due is None:
            ending = self._child.describe_end()
            report(f"{self._child.name} ended by itself, {ending}; starting it again in {self._pause} s.")
            self._due = now + self._pause
        elif now >= self._due:
            self._start_again(now)

    def _check(self, now: float) -> None:
        if now - self._since > STABLE_SECONDS:
            self._pause = FIRST_PAUSE
        before, self._seen_at = self._seen_at, self._child.seen_at
        if self._seen_at != before:
            self._patience.renew()
        end = self._patience.look(now, is_expected=self._seen_at is not None)  # else it may be starting
        if end is not None:
            report(f"{self._child.name} is {end}. It is replaced.")
            self._child.kill()
            self._start_again(now)

    def _start_again(self, now: float) -> None:
        if self._reserve.release():
            report(f"The disk of {self._reserve.folder} is full: the reserved room is given to the database.")
        with suppress(OSError):  # a full disk: the child is still dead at the next look
            self._child.spawn()
            self._patience, self._seen_at = self._child.patience(self._seconds), None
        self._since, self._due, self._pause = now, None, min(2 * self._pause, LONGEST_PAUSE)


def keep(children: Sequence[Child], reserve: Reserve, *, patience: float) -> None:
    """Start again whatever ends or freezes, for ever, waiting longer each time it does not last.

    patience: seconds without a sign of life.
    """
    watched = [Watched(child, reserve, patience) for child in children]
    for child in children:
        child.probe()
    while True:
        for each in watched:
            each.look(time.monotonic())
        reserve.restore()
        time.sleep(LOOK_SECONDS)


def report(sentence: str) -> None:
    with suppress(OSError):  # the terminal may be a file on a full disk
        print(sentence, file=sys.stderr, flush=True)
