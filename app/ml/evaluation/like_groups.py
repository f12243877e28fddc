"""Groups of rows that are alike, which a split row by row puts on both sides.

A test row whose nearest training row is of its own group is predicted from a relative. For a column with many values
the rows of some of them are drawn, whole groups at a time; of each row the nearest other one, by all features but the
column itself, has the same value or not. Beyond chance that is the *likeness* of the groups. It does harm where the
targets of a group are alike too.
"""

from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.dependence.determined_share import determined_share

MAX_COMPARED_ROWS = 1000
MAX_GROUP_ROWS = 20
"""Rows of one group that are compared."""
MAX_DRAWN_ROWS = 50_000
MIN_GROUPS = 10
MIN_LIKENESS, MIN_TARGET_SHARE = 0.35, 0.4
"""Both are needed of any column; in public tables no column without repeated rows of the same thing had 0.3 and 0.4."""
MIN_NAMED_LIKENESS, MIN_NAMED_TARGET_SHARE = 0.2, 0.1
"""Both are enough for a column that is named like one of persons, places or other things with several rows."""
SURE_NAMED_TARGET_SHARE = 0.5
"""Enough alone for such a column, however unlike its rows are in the features."""


class Likeness(NamedTuple):
    likeness: float
    """Share of the rows whose nearest row is of the same group, beyond chance: 0 to 1."""
    same: float
    """That share, with chance."""
    chance: float
    target: float
    """Share of the variation of the target between groups."""

    def is_notable(self, *, named: bool) -> bool:
        """named: whether the column is named like one of groups."""
        if named and self.target >= SURE_NAMED_TARGET_SHARE:
            return True
        least = (MIN_NAMED_LIKENESS, MIN_NAMED_TARGET_SHARE) if named else (MIN_LIKENESS, MIN_TARGET_SHARE)
        return self.likeness >= least[0] and self.target >= least[1]


def drawn_groups(codes: Labels, rng: np.random.Generator) -> Labels:
    """Places of rows of some groups with two rows or more, in random order. codes: (n,) of groups; -1: of none.

    Time grows as n, but no more than `MAX_DRAWN_ROWS` rows are sorted.
    """
    sizes = np.bincount(codes[codes >= 0])
    groups = rng.permutation(np.flatnonzero(sizes > 1))
    enough = np.searchsorted(np.cumsum(np.minimum(sizes[groups], MAX_GROUP_ROWS)), MAX_COMPARED_ROWS) + 1
    chosen = np.zeros(sizes.size + 1, np.bool_)  # the last is that of rows without a group
    chosen[groups[:enough]] = True
    rows = rng.permutation(np.flatnonzero(chosen[codes]))[:MAX_DRAWN_ROWS]
    rows = rows[np.argsort(codes[rows], kind="stable")]
    _, starts, counts = np.unique(codes[rows], return_index=True, return_counts=True)
    place = np.arange(rows.size) - np.repeat(starts, counts)
    return rng.permutation(rows[place < MAX_GROUP_ROWS])[:MAX_COMPARED_ROWS]


def likeness(codes: Labels, x: Matrix, y: Vector, rng: np.random.Generator, *, classes: bool) -> Likeness | None:
    """The likeness of groups (m,) of rows x (m, p), each column of which weighs alike, and of their targets y (m,).

    None for too few groups. Holds m x m numbers.
    """
    sizes = np.bincount(np.unique(codes, return_inverse=True)[1]) if codes.size else codes
    if sizes.size < MIN_GROUPS:
        return None
    squares = np.einsum("ij,ij->i", x, x)
    distances = squares[:, None] + squares - 2 * x @ x.T
    np.fill_diagonal(distances, np.inf)
    same = float((codes[distances.argmin(axis=1)] == codes).mean())
    chance = float((sizes * (sizes - 1)).sum()) / (codes.size * (codes.size - 1))
    target = determined_share(codes.astype(np.float64), y, rng, categories=True, classes=classes)
    return Likeness((same - chance) / (1 - chance), same, chance, target)
