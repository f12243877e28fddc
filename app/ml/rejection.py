"""When not to answer: rows near the border go to somebody else (B3.4, E16, E18).

Every rule accepts what is *strictly* beyond its threshold, so that the threshold itself is doubt: with T = 0 a row of
two equal probabilities is rejected.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from app.ml.contract import Matrix, Vector


class Doubt(NamedTuple):
    """Which rows are rejected: those that any of these rules rejects."""

    accept_above: ArrayLike = 0.0
    """The most probable class is accepted above this probability: one number, or (k,) one for each class."""
    gap_above: float | None = None
    """Its lead over the second."""
    band: tuple[float, float] | None = None
    """Of two classes: probabilities of the second from the first to the second of these numbers are doubt."""

    def accepts(self, probabilities: Matrix) -> NDArray[np.bool_]:
        """(n,) of probabilities (n, k)."""
        best = probabilities.argmax(axis=1)
        top = probabilities[np.arange(len(best)), best]
        accepted: NDArray[np.bool_] = top > np.broadcast_to(self.accept_above, probabilities.shape[1])[best]
        if self.gap_above is not None:
            accepted &= top - _second(probabilities) > self.gap_above
        if self.band is not None:
            low, high = self.band
            accepted &= (probabilities[:, 1] < low) | (probabilities[:, 1] > high)
        return accepted


def _second(probabilities: Matrix) -> Vector:
    """The second largest of each row; 0 where there is but one class."""
    if probabilities.shape[1] < 2:
        return np.zeros(len(probabilities))
    return np.partition(probabilities, -2, axis=1)[:, -2]
