"""The machine of half-labelled rows of two classes, from the starts of their labels that are wanted."""

from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from app.ml.numerics.support_vectors.label_annealing import annealed
from app.ml.numerics.support_vectors.label_switching import HalfLabelled, Switched, switched
from app.ml.numerics.support_vectors.smo import Settings

Init: TypeAlias = Literal["machine", "annealing", "both"]
FIRST_WEIGHT_SHARE = 1e-4
"""First weight of the unlabelled rows, as a share of the last."""


class Transduction(NamedTuple):
    """The last machine, and those before."""

    steps: list[Switched]
    """The first is that of the labelled rows."""
    annealed: bool = False

    @property
    def last(self) -> Switched:
        return self.steps[-1]


def transduced(rows: HalfLabelled, init: Init, stages: int, settings: Settings) -> Transduction:
    """The machine with the lowest objective. init: where the labels start; stages: weights or temperatures."""
    alone, candidates = rows.alone(settings), list[Transduction]()
    if not rows.unlabelled or not max(rows.costs_of) > 0:
        return Transduction([alone])
    divided = 0 < rows.positives < rows.unlabelled
    if init != "annealing" or not divided:
        weights = np.geomspace(1.0, FIRST_WEIGHT_SHARE, stages)[::-1]
        candidates.append(Transduction([alone, *switched(rows, alone, alone.values, weights, settings)]))
    if init != "machine" and divided:
        values = annealed(rows, stages, settings)
        candidates.append(Transduction([alone, *switched(rows, alone, values, np.ones(1), settings)], annealed=True))
    return min(candidates, key=lambda candidate: candidate.last.objective)
