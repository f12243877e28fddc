"""Order of columns by information on the target less what they share with those before: MIFS.

Each step takes the column f that maximises I(C; f) − β Σ I(f; s) over the columns s taken before: relevant, and not
redundant. β = 0 ranks by information alone. Informations are those of binned columns, in nats.

Reference: Battiti (1994), IEEE Trans. Neural Networks 5:537.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import Labels, Vector
from app.ml.numerics.dependence.contingency import mutual_information


class Taken(NamedTuple):
    order: list[int]
    """Columns, the first taken first."""
    scores: list[float]
    """Score of each when it was taken."""


def mifs(
    columns: Sequence[Labels],
    relevance: Vector,
    beta: float,
    report: Callable[[float], None],
    *,
    bias_correction: bool = True,
) -> Taken:
    """Take all of d columns (n,) of codes, -1 where missing, one after the other; the first wins a tie.

    relevance: (d,) I(C; f). report: gets the share that is done. Time grows with d².
    """
    left, redundancy = np.ones(relevance.size, np.bool_), np.zeros(relevance.size)
    taken = Taken([], [])
    while left.any():
        score = np.where(left, relevance - beta * redundancy, -np.inf)
        best = int(score.argmax())
        taken.order.append(best)
        taken.scores.append(float(score[best]))
        left[best] = False
        if beta:
            for other in np.flatnonzero(left).tolist():
                redundancy[other] += shared(columns[best], columns[other], bias_correction=bias_correction)
        report(len(taken.order) / relevance.size)
    return taken


def shared(a: Labels, b: Labels, *, bias_correction: bool = True) -> float:
    """Information of two columns of codes in the rows that have both; 0 where one is constant in these."""
    both = (a >= 0) & (b >= 0)
    if not both.any():
        return 0.0
    information = mutual_information(a[both], b[both], bias_correction=bias_correction).value
    return 0.0 if np.isnan(information) else information
