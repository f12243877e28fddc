"""Rejection: rows near the border go to somebody else (LION 3, 11.7), or the cheapest class is assigned.

Limits are inclusive, by the rule of `app.ml.numerics.ensembles.agreement`: at a minimum, or at the cost of a rejection,
a row is accepted, at an end of the band it is in the band, at the threshold it is of the second class.

References: Chow (1970), IEEE Trans. Inf. Theory 16:41; Fumera, Roli & Giacinto (2000), Pattern Recognition 33:2099,
for a threshold for each class.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels, Matrix
from app.ml.evaluation.costs import REJECTED, cheapest
from app.ml.numerics.ensembles import agreement


class Policy(NamedTuple):
    """Rejection policy: a row is rejected if any of these rules rejects it."""

    min_probability: Sequence[float] = ()
    """Smallest accepted probability of the most probable class: one number for all classes, or one for each."""
    min_margin: float | None = None
    """Its smallest accepted lead over the second."""
    band: tuple[float, float] | None = None
    """Probabilities of the second of two classes between which a row is rejected."""
    costs: Matrix | None = None
    """(k, k), costs[i, j] of assigning class j to a row of class i: the cheapest class is assigned."""
    reject_cost: float | None = None
    """Rows whose cheapest class is expected to cost more are rejected."""
    threshold: float | None = None
    """Smallest probability of the second of two classes with which it is predicted; None: the most probable class."""

    def faults(self, k: int) -> Iterator[tuple[str, str]]:
        """Rules that do not fit k classes, with the reason."""
        if len(self.min_probability) not in {0, 1, k}:
            yield "min_probability", f"One number, or one for each of the {k} classes."
        if self.band is not None and k != 2:
            yield "reject_low", f"A band is for two classes; there are {k}."
        if self.costs is not None and self.costs.shape != (k, k):
            yield "costs", f"There are {k} classes: {k} rows of {k} numbers."
        if self.threshold is not None and k != 2:
            yield "threshold", f"A threshold is for two classes; there are {k}."
        if self.threshold is not None and self.costs is not None:
            yield "threshold", "Costs set a threshold of their own: give one of the two."
        if self.costs is None and self.reject_cost is not None:
            yield "reject_cost", "It is compared with the expected cost of a prediction: give costs too."

    def assigned(self, probabilities: Matrix) -> Labels:
        """(n,) of probabilities (n, k): the cheapest class, or that of the threshold; else the most probable."""
        if self.costs is not None:
            return cheapest(probabilities, self.costs)
        return decided_by(probabilities, self.threshold)

    def accepts(self, probabilities: Matrix) -> NDArray[np.bool_]:
        """(n,) of probabilities (n, k)."""
        accepted = np.ones(len(probabilities), np.bool_)
        if self.min_probability or self.min_margin:
            least = np.array(self.min_probability or (0.0,))
            accepted = agreement.accepted(probabilities, least, self.min_margin or 0.0)
        if self.band is not None:
            low, high = self.band
            accepted &= ~(agreement.reaches(probabilities[:, 1], low) & agreement.reaches(high, probabilities[:, 1]))
        if self.costs is not None and self.reject_cost is not None:
            accepted &= cheapest(probabilities, self.costs, self.reject_cost) != REJECTED
        return accepted


def decided_by(probabilities: Matrix, threshold: float | None) -> Labels:
    """(n,) the most probable class; with a threshold the second of two where its probability reaches it (LION 8.1)."""
    if threshold is None:
        chosen: Labels = probabilities.argmax(axis=1)
        return chosen
    return agreement.reaches(probabilities[:, 1], threshold).astype(np.intp)
