"""Reasons for which a worker ends a trainer."""

from enum import Enum, auto


class Verdict(Enum):
    """Why we ended a trainer that had not ended itself."""

    CANCELLED = auto()
    LEASE_LOST = auto()
    TIMED_OUT = auto()
    FROZEN = auto()
    STOPPED = auto()
    NOT_FED = auto()
    NOT_KEPT = auto()
