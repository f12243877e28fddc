"""Seconds of the stages of a job: reading, preparing, fitting, evaluating, storing.

    with timed("fitting"):
        ...

counts for the clock of the job, if one runs; within another stage it counts for the inner one alone.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, TypeAlias, get_args

from pydantic import Field

from app.base.wire import Wire

Stage: TypeAlias = Literal["reading", "preparing", "fitting", "evaluating", "storing"]


class StageSeconds(Wire):
    """Wall time in seconds of the stages of a job, of its last attempt. Their sum is the time from its creation."""

    queued: float = Field(0.0, description="Seconds from the creation of the job to the start of its last attempt.")
    reading: float = Field(0.0, description="Seconds of reading models, datasets and files, and of checking rows.")
    preparing: float = Field(0.0, description="Seconds of preparing columns: scales, categories, texts.")
    fitting: float = Field(0.0, description="Seconds of fitting models, those of folds and candidates included.")
    evaluating: float = Field(
        0.0, description="Seconds of predictions, metrics, intervals and plots, and of all that is no other stage."
    )
    storing: float = Field(0.0, description="Seconds of writing the result, until it is committed.")


class StageClock:
    """A stop watch of stages, one of which runs at a time."""

    def __init__(self, stage: Stage) -> None:
        self.stage: Stage = stage
        """The stage that runs."""
        self._seconds: dict[Stage, float] = dict.fromkeys(get_args(Stage), 0.0)
        self._since = time.monotonic()

    def enter(self, stage: Stage) -> None:
        self.seconds()
        self.stage = stage

    def seconds(self) -> Mapping[Stage, float]:
        """Seconds of each stage so far."""
        now = time.monotonic()
        self._seconds[self.stage] += now - self._since
        self._since = now
        return self._seconds


CLOCK: ContextVar[StageClock | None] = ContextVar("stage_clock", default=None)
"""The clock of the job that runs in this context; None: nobody counts."""


@contextmanager
def timed(stage: Stage) -> Iterator[None]:
    """Count the time of the block for this stage; also a decorator."""
    if (clock := CLOCK.get()) is None:
        yield
        return
    outer = clock.stage
    clock.enter(stage)
    try:
        yield
    finally:
        clock.enter(outer)
