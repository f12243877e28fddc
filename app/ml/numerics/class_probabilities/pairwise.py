r"""Pairwise coupling: probabilities of k classes from those of each pair.

From rᵢⱼ, an estimate of P(i | i or j), the p with sum 1 that minimises Σᵢ Σ_{j≠i} (rⱼᵢ pᵢ − rᵢⱼ pⱼ)²: one linear
system a row. No entry of the minimum is negative.

Reference: Wu, Lin & Weng (2004), J. Mach. Learn. Res. 5:975, section 4.2.
"""

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Matrix

MIN_PROBABILITY = 1e-7
"""Probabilities of a pair are held this far from 0 and 1, so that the minimum is unique."""


def coupled(later: Matrix, pairs: NDArray[np.intp], classes: int) -> Matrix:
    """(n, k) probabilities; each row by itself.

    later: (n, p) probabilities of the second class of each pair. pairs: (p, 2) all pairs of the classes.
    """
    r = np.full((len(later), classes, classes), 0.5)
    held = np.clip(later, MIN_PROBABILITY, 1 - MIN_PROBABILITY)
    first, second = pairs.T
    r[:, second, first], r[:, first, second] = held, 1 - held
    off = ~np.eye(classes, dtype=bool)
    system = np.zeros((len(later), classes + 1, classes + 1))
    system[:, :classes, :classes] = np.where(off, -r * r.transpose(0, 2, 1), 0.0)
    places = np.arange(classes)
    system[:, places, places] = np.where(off, np.square(r.transpose(0, 2, 1)), 0.0).sum(axis=2)
    system[:, classes, :classes] = system[:, :classes, classes] = 1.0
    wanted = np.zeros((len(later), classes + 1, 1))
    wanted[:, classes] = 1.0
    shares = np.maximum(np.linalg.solve(system, wanted)[:, :classes, 0], 0.0)
    result: Matrix = shares / shares.sum(axis=1, keepdims=True)
    return result
