r"""Probably approximately correct learning: rows, accuracy ε and failure δ of a finite class, or one of VC dimension d.

With probability 1 − δ over m rows, for all functions of the class at once:

| class | no training error (realisable) | any training error (agnostic) |
|---|---|---|
| \|H\| functions | ε = (ln \|H\| + ln(1/δ)) / m | ε = √((ln \|H\| + ln(2/δ)) / (2m)) |
| dimension d | ε = (2/m) (log₂ Π(2m) + log₂(2/δ)) | ε = √((ln Π(2m) + ln(4/δ)) / m) |

ε is a bound of the risk where there is no training error, else of its distance from the training error.

References: Valiant (1984), Commun. ACM 27:1134; Blumer, Ehrenfeucht, Haussler & Warmuth (1989), J. ACM 36:929, Theorem
A2.1, for the third (of m ≥ 8/ε rows); Hoeffding (1963), J. Am. Stat. Assoc. 58:13, for the second; Vapnik (1998),
Statistical Learning Theory, for the fourth; MIT 6.036, recitation of 6 April 2017.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from app.ml.numerics.support_vectors.vc_bounds import growth_term, log_growth


class Capacity(NamedTuple):
    """The size of a class of functions: one of the two is given."""

    log_size: float | None = None
    """ln |H| of a finite class."""
    dimension: int | None = None
    """VC dimension."""


def accuracy(capacity: Capacity, rows: int, delta: float, *, agnostic: bool) -> float:
    """ε; falls with rows.

    >>> round(accuracy(Capacity(math.log(1000)), 100, 0.05, agnostic=False), 6)
    0.099035
    """
    if capacity.log_size is not None:
        if agnostic:
            return math.sqrt((capacity.log_size - math.log(delta / 2)) / (2 * rows))
        return (capacity.log_size - math.log(delta)) / rows
    labellings = log_growth(capacity.dimension or 0, 2 * rows)
    if agnostic:
        return growth_term(labellings, rows, delta)
    return max(8 / rows, 2 * (labellings - math.log(delta / 2)) / (math.log(2) * rows))


def failure(capacity: Capacity, rows: int, epsilon: float, *, agnostic: bool) -> float:
    """δ, at most 1."""
    if capacity.log_size is not None:
        exponent = math.log(2) - 2 * rows * epsilon**2 if agnostic else -epsilon * rows
        return math.exp(min(0.0, capacity.log_size + exponent))
    labellings = log_growth(capacity.dimension or 0, 2 * rows)
    if agnostic:
        return math.exp(min(0.0, math.log(4) + labellings - rows * epsilon**2))
    if rows * epsilon < 8:
        return 1.0
    return math.exp(min(0.0, math.log(2) + labellings - math.log(2) * epsilon * rows / 2))


def rows_needed(capacity: Capacity, epsilon: float, delta: float, *, agnostic: bool) -> int:
    """Fewest rows m with this accuracy.

    >>> rows_needed(Capacity(math.log(1000)), 0.1, 0.05, agnostic=False)
    100
    """
    return least(lambda rows: accuracy(capacity, rows, delta, agnostic=agnostic) <= epsilon)


def least(holds: Callable[[int], bool]) -> int:
    """Smallest whole number from 1 that fulfils a condition which all larger ones fulfil too."""
    high = 1
    while not holds(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def log_size_allowed(rows: int, epsilon: float, delta: float, *, agnostic: bool) -> float:
    """Ln |H| of the largest finite class with this accuracy; below 0 where not even one function has it."""
    return 2 * rows * epsilon**2 + math.log(delta / 2) if agnostic else epsilon * rows + math.log(delta)
