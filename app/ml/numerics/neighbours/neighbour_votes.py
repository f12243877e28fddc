"""Shares of neighbours in a prediction, by weight and distance, and the votes for classes that they make up."""

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix

LEAD = 1e-9
"""By how much the winner of a tied vote leads."""


def shares(weights: Matrix, far: Matrix, offset: float | None) -> Matrix:
    """(n, k) of neighbours with these row weights and distances, nearest first: of each row together 1.

    offset: d0 of weights 1/(d + d0), with 0 for the nearest alone where it is at distance 0; None: distances play no
    part.
    """
    if offset is not None:
        shifted = far + offset
        nearest = shifted[:, :1]
        sole = nearest == 0
        weights = weights * np.where(
            sole, shifted == 0, np.where(sole, 1.0, nearest) / np.where(shifted > 0, shifted, 1.0)
        )
    weights = weights / weights.max(axis=1, keepdims=True)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def votes(codes: Matrix, counts: Matrix, classes: int) -> Matrix:
    """(n, classes) shares of the classes whose codes (n, k) the neighbours have, nearest first, each with its count.

    Of classes with equal votes the one with the nearest row leads.
    """
    row_codes: Labels = codes.astype(np.intp)
    places = row_codes + classes * np.arange(len(row_codes))[:, None]
    vote_counts = np.bincount(places.ravel(), counts.ravel(), classes * len(row_codes)).reshape(len(row_codes), -1)
    best = vote_counts >= vote_counts.max(axis=1, keepdims=True) * (1 - 1e-12)
    tied = np.flatnonzero(best.sum(axis=1) > 1)
    near = np.take_along_axis(best[tied], row_codes[tied], axis=1).argmax(axis=1)
    vote_counts[tied, row_codes[tied, near]] += LEAD
    return np.asarray(vote_counts / vote_counts.sum(axis=1, keepdims=True))
