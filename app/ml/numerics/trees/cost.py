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


LEAF_BYTES, CLASS_BYTES = 80.0, 8.0
"""Memory of a leaf with the node above it while trees are put together, and of each class more."""
DRAWN_SHARE, NOISY_SHARE = 0.64, 0.3
"""Leaves of a row, in a tree grown out: as many as distinct rows are drawn for it; and of classes that overlap."""


def grown_bytes(size: Size, *, min_samples_leaf: float = 1.0, depth: float | None = None) -> float:
    """Memory of a tree that is grown until its leaves are pure, have so few rows, or are so deep."""
    leaves = size.rows * (NOISY_SHARE if size.classes else DRAWN_SHARE) / max(1.0, min_samples_leaf)
    if depth is not None and depth < math.log2(leaves + 1):
        leaves = 2.0**depth
    return leaves * (LEAF_BYTES + CLASS_BYTES * size.classes)
