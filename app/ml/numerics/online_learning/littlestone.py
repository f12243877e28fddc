"""Littlestone dimension of a finite class, and the predictions of the standard optimal algorithm.

A class shatters a tree of depth d if each of its 2^d paths of instances and labels is that of a hypothesis; the
dimension is the largest such d, and the number of mistakes that the best deterministic learner cannot avoid.

Reference: Shalev-Shwartz & Ben-David (2014), Understanding Machine Learning, definition 21.5 and theorem 21.7.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.base.errors import InvalidData
from app.ml.contract.algorithm import Vector
from app.ml.numerics.online_learning.compiled.class_rounds import Predictions

MOST_SETS = 200_000
"""Sets of hypotheses that a search may look at."""


class Littlestone:
    """Dimensions of the subsets of a class, each a whole number whose bits are its hypotheses."""

    def __init__(self, table: Predictions) -> None:
        """table: (c, m) predictions of m hypotheses on c instances."""
        self.everything = (1 << table.shape[1]) - 1
        self._ones = [_bits(row) for row in table]
        self._splits = sorted({min(ones, self.everything ^ ones) for ones in self._ones} - {0})
        self._known: dict[tuple[int, int], bool] = {}

    def dimension(self, members: int) -> int:
        """Dimension of a set; −1 of none. Raises InvalidData where the search takes too long."""
        return next((d for d in range(members.bit_count().bit_length() - 1, 0, -1) if self.shatters(members, d)), 0) - (
            members == 0
        )

    def shatters(self, members: int, depth: int) -> bool:
        """True if the set shatters a tree of this depth. Raises as `dimension` does."""
        if members.bit_count() < 1 << depth:
            return False
        if depth == 0:
            return True
        key = members, depth
        if key not in self._known:
            if len(self._known) >= MOST_SETS:
                raise InvalidData(
                    f"The dimension of this class was not found within {MOST_SETS} sets of hypotheses: use halving, "
                    "or a smaller class."
                )
            self._known[key] = any(
                self.shatters(members & ones, depth - 1) and self.shatters(members & ~ones, depth - 1)
                for ones in self._balanced(members, depth)
            )
        return self._known[key]

    def tree(self, members: int, depth: int) -> list[int]:
        """(2^depth − 1,) instances of a shattered tree: behind place i come 2i + 1 for label 0, and 2i + 2 for 1."""
        levels, sets = list[int](), [members]
        for left in range(depth, 0, -1):
            places = [self._splitting(members, left) for members in sets]
            levels += places
            ones = [self._ones[place] for place in places]
            sets = [
                half
                for versions, ones_of_level in zip(sets, ones, strict=True)
                for half in (versions & ~ones_of_level, versions & ones_of_level)
            ]
        return levels

    def _splitting(self, members: int, depth: int) -> int:
        """The first instance by whose labels a set that shatters a tree of this depth splits into two of one less."""
        halves = ((members & ones, members & ~ones) for ones in self._ones)
        return next(n for n, pair in enumerate(halves) if all(self.shatters(half, depth - 1) for half in pair))

    def _balanced(self, members: int, depth: int) -> Sequence[int]:
        """Splits of a set whose halves are large enough for this depth, the most even first."""
        sizes = ((min((members & ones).bit_count(), (members & ~ones).bit_count()), ones) for ones in self._splits)
        return [ones for size, ones in sorted(sizes, reverse=True) if size >= 1 << (depth - 1)]

    def predictions(self, weights: Vector) -> Vector:
        """(c,) for each instance the label whose hypotheses have the larger dimension, 0 where both have the same.

        weights: (m,) above 0 for the hypotheses that are left.
        """
        members = _bits(weights > 0)
        sides = [(members & ones, members & ~ones) for ones in self._ones]
        return np.array([float(self._larger(ones, zero)) for ones, zero in sides])

    def _larger(self, ones: int, zero: int) -> bool:
        """True if the first set has the larger dimension."""
        return bool(ones) and (not zero or self.dimension(ones) > self.dimension(zero))


def _bits(truths: NDArray[Any]) -> int:
    """The whole number whose bits these are, the first the lowest."""
    return int.from_bytes(np.packbits(truths != 0, bitorder="little").tobytes(), "little")
