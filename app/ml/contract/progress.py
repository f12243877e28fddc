"""Progress of a task, reported to a listener: it never goes back."""

import math
from collections.abc import Mapping
from typing import Protocol


class Progress(Protocol):
    def __call__(self, fraction: float, **measures: float) -> None:
        """Report how far the fit is, 0 to 1, and what the named measures are now (a point of each curve)."""


def silent(fraction: float, **measures: float) -> None:
    """A `Progress` that nobody watches."""


def part_of(progress: Progress, stage: int, count: int) -> Progress:
    """Progress of the whole from that of one of so many parts, counted from 0."""
    return lambda fraction, **measures: progress((stage + fraction) / count, **measures)


class Reporter(Protocol):
    """Receives the progress of a task."""

    def __call__(self, fraction: float, message: str, measures: Mapping[str, float]) -> None:
        """`fraction`: 0 to 1, never going back. `message`: what is being done. `measures`: a point of each curve."""


def unheard(fraction: float, message: str, measures: Mapping[str, float]) -> None:
    """A `Reporter` that nobody listens to."""


def reporter(progress: Progress) -> Reporter:
    """A `Reporter` that hands on fractions and measures; the message stays that of the stage."""
    return lambda fraction, _, measures: progress(fraction, **measures)


class Stages:
    """Keeps what is reported from going back, whatever a fit reports of itself."""

    def __init__(self, reporter: Reporter) -> None:
        self._report = reporter
        self._reached = 0.0

    def __call__(self, fraction: float, message: str, measures: Mapping[str, float] | None = None) -> None:
        self._reached = max(self._reached, fraction)
        result = {name: float(value) for name, value in (measures or {}).items() if math.isfinite(value)}
        self._report(self._reached, message, result)

    def within(self, begin: float, end: float, message: str) -> Progress:
        """A callback for a fit, its 0 to 1 being `begin` to `end` of the whole."""
        self(begin, message)

        def progress(fraction: float, **measures: float) -> None:
            self(begin + (end - begin) * min(max(fraction, 0.0), 1.0), message, measures)

        return progress
