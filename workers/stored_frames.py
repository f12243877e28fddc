"""Frames of a trainer that are stored as they come: chunks of a table, units of work, models that could be served."""

from app.services.jobs.attempts import Attempts
from app.store.jobs.job_records import Claim
from workers import trainer_frames as frames
from workers.journal_frames import read_checkpoint, read_unit

STORED = frozenset({frames.CHUNK, frames.UNIT, frames.CHECKPOINT})


def store_part(attempts: Attempts, claim: Claim, frame: frames.Frame) -> None:
    """Raises LeaseLost, also when a cancel came first."""
    if frame.kind == frames.CHUNK:
        place, payload = frames.read_chunk(frame.payload)
        attempts.keep(claim, *place, payload=payload)
    elif frame.kind == frames.UNIT:
        attempts.keep_unit(claim, read_unit(frame.payload))
    else:
        attempts.keep_checkpoint(claim, *read_checkpoint(frame.payload))
