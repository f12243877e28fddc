"""Frames of parts of a job that are stored while it runs: units of work, and models that could be served."""

import json
from collections.abc import Mapping, Sequence
from typing import IO

from app.ml.contract.algorithm import JSON
from app.ml.evaluation.report import Report
from app.ml.kinds.job import Trained
from app.ml.kinds.journal import StoredUnit
from workers import trainer_frames as frames

MAX_CHECKPOINT_BYTES = 64 << 20
"""Size of a model above which none is stored before the end: a frame is held in memory."""


def write_unit(unit: StoredUnit) -> bytes:
    return frames.join(json.dumps(unit.outcome).encode(), unit.payload)


def read_unit(payload: bytes) -> StoredUnit:
    outcome, rest = frames.split(payload)
    return StoredUnit(json.loads(outcome), rest)


def read_checkpoint(payload: bytes) -> tuple[Trained, Mapping[str, JSON]]:
    """The model, and the note that goes with it."""
    head, blob, seen, reference = frames.split(payload)
    described = json.loads(head)
    report = Report.model_validate(described["report"])
    return Trained(blob, report, described["golden"], seen, reference), described["note"]


class StoredJournal:
    """An `app.ml.kinds.journal.Journal` with the units of earlier attempts."""

    def __init__(
        self, units: Sequence[StoredUnit] = (), spent_seconds: float = 0.0, outlet: IO[bytes] | None = None
    ) -> None:
        """outlet: to the supervisor; None: nothing is stored."""
        self.units, self.spent_seconds, self._outlet = units, spent_seconds, outlet

    def writing_to(self, outlet: IO[bytes]) -> "StoredJournal":
        return StoredJournal(self.units, self.spent_seconds, outlet)

    def add_unit(self, unit: StoredUnit) -> None:
        if self._outlet is not None:
            frames.write(self._outlet, frames.UNIT, write_unit(unit))

    def replace_checkpoint(self, blob: bytes, head: Mapping[str, JSON], seen: bytes, reference: bytes) -> None:
        if self._outlet is not None and len(blob) + len(seen) + len(reference) <= MAX_CHECKPOINT_BYTES:
            payload = frames.join(json.dumps(head).encode(), blob, seen, reference)
            frames.write(self._outlet, frames.CHECKPOINT, payload)
