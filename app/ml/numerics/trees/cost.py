"""Cost of growing trees, roughly: seconds on one core of about 2023, measured on noisy tables."""

import math

from app.ml.contract.algorithm import Size

PER_CELL = 1.4e-8
"""Time of one tree per number, each time that a level of it divides the rows again."""


def growing(size: Size, *, depth: float | None = None) -> float:
    """Time of a tree that tries all columns at every split, with at most so many splits on a path.

    Fully grown it is about log₂ n deep; rows of many classes come apart later.
    """
    levels = min(math.log2(size.rows + 2), math.inf if depth is None else max(1, depth))
    return PER_CELL * size.cells * levels * max(1.0, size.classes / 2)
