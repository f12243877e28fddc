r"""Bounds of Vapnik and Chervonenkis: capacity of planes with a margin, and the risk that follows from it.

Planes with ‖w‖ ≤ A, for points in a ball of radius R and n dimensions, have a dimension h ≤ min(⌈R²A²⌉, n) + 1. With
probability 1 − p, the risk of each function of a class of dimension h is at most its share of errors on l rows plus

    √((h (ln(2l/h) + 1) − ln(p/4)) / l).

References: Vapnik (1998), Statistical Learning Theory; Battiti & Brunato, The LION Way, section 10.1.
"""

import math

ROUNDING = 1e-9
FAILURE = 0.05
"""Probability with which a bound may fail, where nothing else is stated."""


def confidence_term(rows: float, dimension: float, probability: float) -> float:
    """The term added to the share of errors on so many rows. dimension: h, at least 1. probability: p, of failure."""
    h = min(dimension, 2 * rows)
    square = (h * (math.log(2 * rows / h) + 1) - math.log(probability / 4)) / rows
    return math.sqrt(square)


def margin_dimension(radius: float, length: float, dimensions: float) -> float:
    """Bound of h. radius: R. length: A, of the weights. dimensions: n, perhaps infinite."""
    capacity = radius**2 * length**2
    whole = capacity if math.isinf(capacity) else math.ceil(capacity * (1 - ROUNDING))
    return min(whole, dimensions) + 1
