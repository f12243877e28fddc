"""Counts of predictions, and of where their models were found: plain numbers of one process."""

from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from threading import Lock

MOST_MODELS = 1000
"""Models counted by name; predictions of further ones are counted together."""
OTHER = "other models"
"""No model has this name, because of its space."""


class Level(StrEnum):
    """Places where a model is looked up, in this order."""

    MEMORY = "memory"
    REDIS = "redis"
    POSTGRES = "postgres"


class Tally:
    """`add` and `found_in_memory` are part of every prediction: they belong to the event loop and need no lock."""

    def __init__(self) -> None:
        self.found_in_memory = 0
        self.loads = 0
        self.load_seconds = 0.0
        self._models: dict[str, list[int]] = {}
        self._lookups: Counter[tuple[Level, bool]] = Counter()
        self._lock = Lock()

    def add(self, model: str, rows: int) -> None:
        """A request that got predictions of so many rows."""
        counts = self._models.get(model) or self._of(model)
        counts[0] += 1
        counts[1] += rows

    def looked_up(self, level: Level, *, is_hit: bool) -> None:
        """Called on the slow path only, from any thread."""
        with self._lock:
            self._lookups[level, is_hit] += 1

    def loaded(self, seconds: float) -> None:
        """A model was decoded and checked."""
        with self._lock:
            self.loads += 1
            self.load_seconds += seconds

    def models(self) -> Iterator[tuple[str, int, int]]:
        """Names, requests and rows."""
        for model, (requests, rows) in list(self._models.items()):
            yield model, requests, rows

    def lookups(self) -> Iterator[tuple[Level, bool, int]]:
        """Levels, whether the model was there, and how often. All of them, also those that never happened."""
        with self._lock:
            counts = self._lookups.copy()
        counts[Level.MEMORY, True] += self.found_in_memory
        for level in Level:
            for is_hit in (True, False):
                yield level, is_hit, counts[level, is_hit]

    def _of(self, model: str) -> list[int]:
        name = model if len(self._models) < MOST_MODELS else OTHER
        return self._models.setdefault(name, [0, 0])
