"""Relations between rows: the form in which they are given, their meaning, and their values for the rows of a fit."""

from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Form(StrEnum):
    """Form in which relations between rows are given."""

    SQUARE = "square"
    """The dataset itself: a value for every pair of rows."""
    EDGES = "edges"
    """A dataset of pairs of items with a value each; pairs that it lacks are unknown."""
    PAIRS = "pairs"
    """A dataset of pairs of items that belong together or apart."""


class Meaning(StrEnum):
    """Meaning of the value of a pair."""

    DISSIMILARITY = "dissimilarity"
    """0 for equal rows, and never negative."""
    SIMILARITY = "similarity"
    """Larger for rows that are more alike, and never negative."""
    KERNEL = "kernel"
    """An inner product: the matrix of all pairs is positive semidefinite."""
    CONSTRAINT = "constraint"
    """Above 0 for rows that must belong together, below 0 for rows that cannot, by weight."""


class Edges(NamedTuple):
    """Pairs of rows, each once and with the smaller place first, in ascending order."""

    first: NDArray[np.intp]
    """(m,) place of one row."""
    second: NDArray[np.intp]
    """(m,) place of the other, larger one."""
    values: NDArray[np.float64]
    """(m,)"""
    weights: NDArray[np.float64] | None = None
    """(m,) above 0, of the pairs; None: each has the weight 1."""

    def within(self, rows: NDArray[np.intp], count: int) -> "Edges":
        """Those between these different rows of `count`, by their places among these."""
        places = np.full(count, -1)
        places[rows] = np.arange(rows.size)
        first, second = places[self.first], places[self.second]
        is_inside = (first >= 0) & (second >= 0)
        low, high = np.minimum(first, second)[is_inside], np.maximum(first, second)[is_inside]
        order = np.lexsort((high, low))
        weights = None if self.weights is None else self.weights[is_inside][order]
        return Edges(low[order], high[order], self.values[is_inside][order], weights)


class Relations(NamedTuple):
    """Relations between the n rows of a fit: of all pairs, or of those that are known."""

    meaning: Meaning
    square: NDArray[np.float64] | None = None
    """(n, n) symmetric; the columns of `Data.x` are then the values beside the training rows."""
    edges: Edges | None = None
    """Known pairs, where there is no square."""
    by_item: bool = False
    """True if the rows are the items of the edges and nothing else is known of them: `Data.x` (n, 1) then has the rank
    of each among the names of all training rows, and `predict` gets such ranks."""

    def take(self, rows: NDArray[np.intp], count: int) -> "Relations":
        """Those between these different rows of `count`, by their places among these."""
        if np.array_equal(rows, np.arange(count)):
            return self
        if self.edges is not None:
            return self._replace(edges=self.edges.within(rows, count))
        assert self.square is not None  # noqa: S101 - one of the two is there
        square = self.square[np.ix_(rows, rows)]
        square.setflags(write=False)
        return self._replace(square=square)


def item_places(x: NDArray[np.float64], count: int) -> NDArray[np.intp]:
    """(n,) places among `count` training rows, from the matrix (n, 1) of rows that are items; a gap is the first."""
    return np.clip(np.nan_to_num(x[:, 0]), 0, count - 1).astype(np.intp)
