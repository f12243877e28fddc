"""Parts of a job that are stored while it runs: units of work, and a model that could be served now.

A job that ends before its end, cancelled, timed out or with its worker, keeps what is stored.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from app.ml.contract.algorithm import JSON

EarlyEnd = Literal["cancel", "limit", "crash"]
"""Reasons for which a job ended before its end."""


class StoredUnit(NamedTuple):
    """A unit of work that an attempt has done."""

    outcome: Mapping[str, JSON]
    payload: bytes = b""


class StoredParts(NamedTuple):
    """All that is left of a job that ended before its end."""

    outcomes: Sequence[Mapping[str, JSON]]
    """Those of its units, in their order."""
    note: Mapping[str, JSON] | None
    """Facts of the stored model; None: there is none."""
    ended_by: EarlyEnd


class Journal(Protocol):
    """Stores parts of a job."""

    @property
    def units(self) -> Sequence[StoredUnit]:
        """Units of earlier attempts."""

    @property
    def spent_seconds(self) -> float:
        """Time since the first attempt began."""

    def add_unit(self, unit: StoredUnit) -> None:
        """Store a unit."""

    def replace_checkpoint(self, blob: bytes, head: Mapping[str, JSON], seen: bytes, reference: bytes) -> None:
        """Store a model in place of the one before. head: its `report`, `golden` and `note`."""


class NoJournal:
    """A `Journal` that stores nothing."""

    units: Sequence[StoredUnit] = ()
    spent_seconds = 0.0

    def add_unit(self, unit: StoredUnit) -> None:
        """Forget it."""

    def replace_checkpoint(self, blob: bytes, head: Mapping[str, JSON], seen: bytes, reference: bytes) -> None:
        """Forget it."""
