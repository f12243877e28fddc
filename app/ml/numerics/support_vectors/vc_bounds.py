r"""Bounds of Vapnik and Chervonenkis: capacity of a class of functions, and the risk that follows from it.

A class of dimension h labels m points in at most Π(m) ≤ Σ C(m, i), i ≤ h, ways (Sauer's lemma). With probability 1 − p,
the risk of each of its functions is at most its share of errors on l rows plus

    √((ln Π(2l) + ln(4/p)) / l),   ln Π(2l) ≤ h (ln(2l/h) + 1).

Planes with ‖w‖ ≤ A, for points in a ball of radius R and n dimensions, have a dimension h ≤ min(⌈R²A²⌉, n) + 1.

References: Vapnik (1998), Statistical Learning Theory, Theorem 4.1, which has another 1/l beside the root; Battiti &
Brunato, The LION Way, sections 10.1 and 10.4; MIT 6.036, recitation of 6 April 2017, with Π itself; Sauer (1972), J.
Comb. Theory A 13:145.
"""

import math
from collections.abc import Sequence

import numpy as np

ROUNDING = 1e-9
FAILURE = 0.05
"""Probability with which a bound may fail, where nothing else is stated."""


def sauer(dimension: int, points: int) -> int:
    """Largest number of labellings of so many points by any class of this dimension.

    >>> sauer(2, 5)
    16
    """
    return sum(math.comb(points, i) for i in range(min(dimension, points) + 1))


def log_growth(dimension: float, points: float) -> float:
    """Bound of ln Π(points). dimension: h, at least 0, perhaps infinite: every labelling then counts.

    >>> round(math.exp(log_growth(4, 4)))
    16
    """
    every = points * math.log(2)
    if dimension <= 0:
        return 0.0
    if dimension >= points:
        return every
    return min(every, dimension * (math.log(points / dimension) + 1))


def growth_term(log_labellings: float, rows: float, probability: float) -> float:
    """The term added to the share of errors, by the growth function. log_labellings: ln Π(2 · rows).

    >>> round(growth_term(math.log(2001), 1000, 0.05), 6)  # thresholds
    0.109469
    """
    return math.sqrt((log_labellings + math.log(4 / probability)) / rows)


def confidence_term(rows: float, dimension: float, probability: float) -> float:
    """The term added to the share of errors on so many rows. dimension: h, at least 0. probability: p, of failure.

    >>> [round(confidence_term(rows, h, 0.05), 6) for rows, h in [(1000, 10), (10_000, 10), (1000, 3)]]
    [0.259548, 0.095074, 0.163978]
    """
    return growth_term(log_growth(dimension, 2 * rows), rows, probability)


def simple_term(rows: float, dimension: float) -> float:
    """The term without logarithms that structural risk minimisation may add instead: √(h/l) (LION 10.3)."""
    return math.sqrt(dimension / rows)


def structural_minimum(risks: Sequence[float], terms: Sequence[float]) -> int:
    """Place of the nested class with the least sum of training error and term: the first of equal ones (LION 10.4)."""
    return int(np.argmin(np.add(risks, terms)))


def margin_dimension(radius: float, length: float, dimensions: float) -> float:
    """Bound of h. radius: R. length: A, of the weights. dimensions: n, perhaps infinite.

    >>> margin_dimension(2, 1.5, 100), margin_dimension(2, 1.5, 5)
    (10, 6)
    """
    capacity = (radius * length) * (radius * length)
    whole = capacity if math.isinf(capacity) else math.ceil(capacity * (1 - ROUNDING))
    return min(whole, dimensions) + 1
