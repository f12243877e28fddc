"""How mixed the rows of a node are, from sums over them, so that all cuts of a node are judged at once.

Sums have their kinds along the first axis: the weight of each class (k, …), or for numbers the weight, the weighted
sum and the weighted sum of squares (3, …). Every function gives impurity × weight (…), which adds over nodes.

References: Quinlan (1986), Machine Learning 1:81 (entropy); Breiman et al. (1984), CART (Gini, variance).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

Sums = NDArray[np.float64]
Totals = NDArray[np.float64]


def entropy(sums: Sums) -> Totals:
    """W · −Σ p log₂ p, in bits: 0 for one class, W log₂ k for k equal ones.

    >>> round(float(entropy(np.array([9.0, 5.0])) / 14), 7)
    0.940286
    """
    kinds = np.maximum(sums, 0)  # differences of running sums may fall a rounding below zero
    weight = kinds.sum(axis=0)
    bits: Totals = (scipy.special.xlogy(weight, weight) - scipy.special.xlogy(kinds, kinds).sum(axis=0)) / np.log(2)
    return np.maximum(bits, 0)


def gini(sums: Sums) -> Totals:
    """W · Σ p (1 − p): how often a label drawn from the node would be wrong for a row drawn from it.

    >>> round(float(gini(np.array([9.0, 5.0])) / 14), 7)
    0.4591837
    """
    weight = sums.sum(axis=0)
    right = np.einsum("i...,i...->...", sums, sums) / np.maximum(weight, np.finfo(np.float64).tiny)
    total: Totals = np.maximum(weight - right, 0)
    return total


def variance(sums: Sums) -> Totals:
    """W · the mean squared distance from the mean.

    >>> float(variance(np.array([4.0, 10.0, 30.0])) / 4)
    1.25
    """
    weight = np.maximum(sums[0], np.finfo(np.float64).tiny)
    total: Totals = np.maximum(sums[2] - sums[1] ** 2 / weight, 0)
    return total


class Criterion(NamedTuple):
    """What a question shall lower, and what else sums say under it."""

    impurity: Callable[[Sums], Totals]
    weight: Callable[[Sums], Totals]
    orders: Callable[[Sums], NDArray[np.float64]]
    """From sums of m categories (s, m) to numbers (orders, m): in one of these orders a good subset comes first."""


def _class_weight(sums: Sums) -> Totals:
    total: Totals = sums.sum(axis=0)
    return total


def _class_shares(sums: Sums) -> NDArray[np.float64]:
    """Of two classes one order holds the best subset (CART, theorem 4.5); of more, each class puts its own forward."""
    shares: NDArray[np.float64] = sums / sums.sum(axis=0)
    return shares[1:] if len(shares) == 2 else shares


ENTROPY = Criterion(entropy, _class_weight, _class_shares)
GINI = Criterion(gini, _class_weight, _class_shares)
VARIANCE = Criterion(variance, lambda sums: sums[0], lambda sums: (sums[1] / sums[0])[None])
