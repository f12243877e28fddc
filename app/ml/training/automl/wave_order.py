"""The order of units: cheap candidates first, growing samples and folds, and no more of what is surely worse.

Units come in waves, whatever the number of slots that work on them, and decisions see whole waves in their canonical
order: the same units are done on any number of workers. A candidate climbs rungs: one fold of few rows, two folds, all
folds of all rows. The best third of each rung goes on, the others pause and are resumed when nothing else is left.
Between a candidate and the leader a test by betting decides on the losses of the rows that both have predicted. It may
be looked at after every wave: over all pairs of candidates it drops one that is not worse with probability at most α,
whichever of them leads.
"""

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from app.ml.contract.algorithm import Labels, Vector
from app.ml.statistics.betting import is_surely_above_zero
from app.ml.training.automl.trial import Unit

WAVE = 8
FIRST_ROWS, ROWS_FACTOR = 10_000, 4
ALPHA = 0.05
"""Probability that a search drops any candidate that is not worse than its leader."""
State = Literal["waiting", "running", "paused", "dropped", "failed", "skipped", "done"]


class Rung(NamedTuple):
    folds: int
    rows: int | None
    """Largest number of training rows; None: all."""


def rungs(folds: int, train_rows: int) -> list[Rung]:
    """From a small sample of one fold to all rows of all folds."""
    caps = (FIRST_ROWS, FIRST_ROWS * ROWS_FACTOR, None)
    steps = [
        Rung(min(count, folds), None if cap is None or train_rows <= cap else cap)
        for count, cap in zip((1, 2, folds), caps, strict=True)
    ]
    return list(dict.fromkeys(steps))


class WaveOrder:
    """State of every candidate and the units that come next."""

    def __init__(
        self, candidates: int, steps: Sequence[Rung], groups: Sequence[Labels] | None = None, *, tested: int
    ) -> None:
        """candidates: their number at the start, in the order in which they begin. groups: for each fold, codes of
        the groups of its rows, which count as one row. tested: candidates that there can be.
        """
        self._rungs = steps
        self._groups = groups
        self._alpha = ALPHA / max(1, tested * (tested - 1))
        self.states: list[State] = ["waiting"] * candidates
        self.reasons: list[str | None] = [None] * candidates
        self._losses: dict[Unit, Vector] = {}
        self._goals: dict[int, int] = {}
        """Rung that each candidate climbs to, or stands on."""
        self._queue: list[Unit] = []

    # what is done

    def add(self, unit: Unit, losses: Vector) -> None:
        """A unit is done. losses: (m,) of the rows of its fold."""
        self._losses[unit] = losses
        if self.is_complete(unit.candidate):
            self.states[unit.candidate] = "done"

    def end(self, candidate: int, state: State, reason: str) -> None:
        """No further unit of it begins."""
        self.states[candidate], self.reasons[candidate] = state, reason
        self._queue = [unit for unit in self._queue if unit.candidate != candidate]

    def admit(self) -> int:
        """Number of a further candidate."""
        self.states.append("waiting")
        self.reasons.append(None)
        return len(self.states) - 1

    def units(self, candidate: int, rung: int) -> list[Unit]:
        step = self._rungs[rung]
        return [Unit(candidate, fold, step.rows) for fold in range(step.folds)]

    def has_rung(self, candidate: int, rung: int) -> bool:
        return all(unit in self._losses for unit in self.units(candidate, rung))

    def is_complete(self, candidate: int) -> bool:
        """True if it has all folds of all rows."""
        return self.has_rung(candidate, len(self._rungs) - 1)

    def losses(self, candidate: int) -> list[Vector]:
        """Losses of each fold of all rows that it has."""
        units = self.units(candidate, len(self._rungs) - 1)
        return [self._losses[unit] for unit in units if unit in self._losses]

    def rank(self, rung: int) -> list[int]:
        """The candidates that have a rung, the best first."""
        on_rung = [index for index in range(len(self.states)) if self.has_rung(index, rung)]
        return sorted(on_rung, key=lambda candidate: (self._mean(candidate, rung), candidate))

    @property
    def complete(self) -> list[int]:
        """Candidates with all folds, the best first."""
        return self.rank(len(self._rungs) - 1)

    @property
    def leader(self) -> int | None:
        """The best candidate of the highest rung that any has."""
        for rung in reversed(range(len(self._rungs))):
            if ranked := self.rank(rung):
                return ranked[0]
        return None

    def _mean(self, candidate: int, rung: int) -> float:
        return float(np.concatenate([self._losses[unit] for unit in self.units(candidate, rung)]).mean())

    # what comes next

    def next_wave(self, propose: Callable[[], int | None], *, is_late: bool = False) -> list[Unit]:
        """Units to do now, at most `WAVE`; none when nothing is left.

        propose: admits a further candidate, or returns None. is_late: such candidates come before those that wait.
        """
        while len(self._queue) < WAVE and self._extend(propose, is_late=is_late):
            pass
        wave, self._queue = self._queue[:WAVE], self._queue[WAVE:]
        return wave

    def _extend(self, propose: Callable[[], int | None], *, is_late: bool) -> bool:
        """Queue the units of the next climb. False if there is none."""
        if not self._goals and "waiting" in self.states:  # something to serve as soon as can be
            return self._climb(self.states.index("waiting"), len(self._rungs) - 1)
        best = self._next_climb(lambda ranked: ranked[: math.ceil(len(ranked) / 3)])
        if best is not None:
            return self._climb(*best)
        proposed = propose() if is_late or "waiting" not in self.states else None
        if proposed is None and "waiting" in self.states:
            proposed = self.states.index("waiting")
        if proposed is not None:
            return self._climb(proposed, 0)
        paused = self._next_climb(lambda ranked: ranked)
        return paused is not None and self._climb(*paused)

    def _next_climb(self, choose: Callable[[list[int]], list[int]]) -> tuple[int, int] | None:
        """The best candidate of the highest rung among those that are chosen of each, and the rung above."""
        for rung in reversed(range(len(self._rungs) - 1)):
            for candidate in choose(self.rank(rung)):
                if self._stands(candidate, rung):
                    return candidate, rung + 1
        return None

    def _stands(self, candidate: int, rung: int) -> bool:
        """True if it has reached this rung, and nothing else was decided."""
        return self._goals.get(candidate) == rung and self.states[candidate] in {"running", "paused"}

    def _climb(self, candidate: int, rung: int) -> bool:
        self.states[candidate], self._goals[candidate] = "running", rung
        self._queue += [unit for unit in self.units(candidate, rung) if unit not in self._losses]
        return True

    # what no longer comes

    def decide(self) -> None:
        """After a wave: drop what is surely worse than the leader, pause what is not among the best of its rung."""
        leader = self.leader
        if leader is None:
            return
        for candidate, state in enumerate(self.states):
            if state in {"running", "paused"} and candidate != leader and self._is_surely_worse(candidate, leader):
                self.end(candidate, "dropped", f"Surely worse than candidate {leader}, on the rows of both.")
        queued = {unit.candidate for unit in self._queue}
        for candidate, state in enumerate(self.states):
            if state == "running" and candidate not in queued:
                self.states[candidate] = "paused"

    def _is_surely_worse(self, candidate: int, leader: int) -> bool:
        for rows in dict.fromkeys(step.rows for step in reversed(self._rungs)):
            folds = [
                fold
                for fold in range(self._rungs[-1].folds)
                if {Unit(candidate, fold, rows), Unit(leader, fold, rows)} <= self._losses.keys()
            ]
            if len(folds) < 2:
                continue
            blocks = [self._difference(Unit(candidate, fold, rows), Unit(leader, fold, rows)) for fold in folds]
            return is_surely_above_zero(np.concatenate(blocks), blocks[0].size, self._alpha)
        return False

    def _difference(self, unit: Unit, other: Unit) -> Vector:
        """Differences of losses, of rows or of groups."""
        gap = self._losses[unit] - self._losses[other]
        if self._groups is None:
            return gap
        codes = self._groups[unit.fold]
        sums, counts = np.bincount(codes, gap), np.bincount(codes)
        means: Vector = sums[counts > 0] / counts[counts > 0]
        return means
