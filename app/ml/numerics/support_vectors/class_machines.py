"""Machines of several classes: which classes each of them parts, and what follows from all for each class."""

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels, Matrix
from app.ml.numerics.class_probabilities.pairwise import coupled

Multiclass: TypeAlias = Literal["one_vs_one", "one_vs_rest"]


def pairs_of(how: Multiclass, codes: Labels) -> list[tuple[int, int]]:
    """The two classes of each machine, whose values are positive for the second; -1: all others."""
    if how == "one_vs_rest" and codes.size > 2:
        return [(-1, int(code)) for code in codes]
    return [(int(code), int(other)) for i, code in enumerate(codes) for other in codes[i + 1 :]]


def of_pair(codes: Labels, first: int, second: int) -> NDArray[np.bool_]:
    """(n,) rows of these classes."""
    return np.ones(codes.size, bool) if first < 0 else (codes == first) | (codes == second)


def class_shares(how: Multiclass, positive: Matrix, classes: int, *, fitted: bool) -> Matrix:
    """(n, k) from the shares (n, p) of the second class of each machine. fitted: they are probabilities."""
    if classes == 1:
        return np.ones((len(positive), 1))
    if classes == 2:
        both = np.empty((len(positive), 2))
        np.subtract(1.0, positive[:, 0], out=both[:, 0])
        both[:, 1] = positive[:, 0]
        return both
    if how == "one_vs_rest":
        total = positive.sum(axis=1, keepdims=True)
        shares: Matrix = np.where(total > 0, positive, 1.0) / np.where(total > 0, total, float(classes))
        return shares
    pairs = np.array(pairs_of(how, np.arange(classes)))
    if fitted:
        return coupled(positive, pairs, classes)
    sums = np.zeros((len(positive), classes))
    for (first, second), share in zip(pairs, positive.T, strict=True):
        sums[:, first] += 1 - share
        sums[:, second] += share
    return sums / len(pairs)


def towards_classes(how: Multiclass, weights: Matrix, codes: Labels) -> Matrix:
    """(d, k) mean over the machines of a class of their weights (p, d) towards it; of two classes, those of the second.

    codes: (k,) classes that have machines.
    """
    if len(weights) == 1:
        return weights.T
    pairs = np.array(pairs_of(how, codes))
    towards = (pairs[:, 1] == codes[:, None]) * 1.0 - (pairs[:, 0] == codes[:, None])
    return np.asarray(weights.T @ (towards / np.abs(towards).sum(axis=1, keepdims=True)).T)
