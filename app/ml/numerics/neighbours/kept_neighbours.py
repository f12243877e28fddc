"""Neighbourhoods of rows that a map keeps: trustworthiness, continuity, and how far the distances are from its own.

References: Venna & Kaski (2001), Proc. ICANN, p. 485; Kruskal (1964), Psychometrika 29:1.
"""

from typing import Literal, NamedTuple, Self

import numpy as np

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.neighbours.distances import squared_distances

CELLS = 2**22
"""Numbers held at a time, where equal rows are compared column by column."""
DIGITS = 12
"""Digits after which distances are equal, of the largest."""


def distances(x: Matrix) -> Matrix:
    """(m, m) of rows (m, d), Euclidean."""
    m = len(x)
    squares, step = np.empty((m, m)), max(1, CELLS // max(x.size, 1))
    for start in range(0, m, step):
        squares[start : start + step] = squared_distances(x[start : start + step], x)
    return np.sqrt(np.maximum(squares, 0.0))


def most_neighbours(m: int, wanted: int) -> int:
    """Neighbours of each of m rows that can be compared: fewer than half of the rows; 0 for fewer than three."""
    return max(0, min(wanted, (m - 1) // 2))


def retained_neighbours(before: Matrix, after: Matrix, k: int) -> tuple[Vector, Vector]:
    """(m,) each, whose means are trustworthiness and continuity: 1 where the k nearest rows of a row are the same, 0
    where they are as wrong as can be.

    before, after: (m, m) distances of the rows and of their places in the map. Trustworthiness loses by rows that are
    near in the map only, continuity by those that are near in the table only. Of rows at equal distances, as many as
    are among the k nearest count in part, all alike, and each is as far behind as the first of them.
    """
    m = len(before)
    of_rows, mapped = _Places.of(before), _Places.of(after)
    scale = 2 / (k * (2 * m - 3 * k - 1))
    trust, continuity = (
        1 - scale * (near.within(k) * far.beyond(k)).sum(axis=1) for near, far in ((mapped, of_rows), (of_rows, mapped))
    )
    return trust, continuity


class _Places(NamedTuple):
    """Places of rows among the neighbours of each row: (m, m), of which those of the row itself mean nothing."""

    nearer: Matrix
    """Rows that are nearer."""
    up_to: Matrix
    """Rows that are as near or nearer, the one itself among them."""

    @classmethod
    def of(cls, distances: Matrix) -> Self:
        """found: (m, m) distances."""
        rounded = np.round(distances / max(float(distances.max()), np.finfo(float).tiny), DIGITS)
        np.fill_diagonal(rounded, np.inf)
        ordered = np.sort(rounded, axis=1)
        return cls(*(_counts(ordered, rounded, side) for side in ("left", "right")))

    def within(self, k: int) -> Matrix:
        """Share of each that is among the k nearest: 1, 0, or between where equal distances cross the k-th place."""
        share = np.clip((k - self.nearer) / (self.up_to - self.nearer), 0, 1)
        np.fill_diagonal(share, 0.0)
        return share

    def beyond(self, k: int) -> Matrix:
        """Places of each behind the k-th; 0 before it."""
        return np.maximum(self.nearer + 1 - k, 0)


def _counts(ordered: Matrix, distances: Matrix, side: Literal["left", "right"]) -> Matrix:
    return np.stack(
        [np.searchsorted(row, values, side).astype(np.float64) for row, values in zip(ordered, distances, strict=True)]
    )


def strain(before: Matrix, after: Matrix) -> tuple[Vector, Vector]:
    """(m,) sums over the other rows of (d − bδ)² and of d², with d in the map, δ in the table, and the scale b that
    makes the former least.
    """
    square = float(np.vdot(before, before))
    scale = float(np.vdot(before, after)) / square if square > 0 else 0.0
    return np.square(after - scale * before).sum(axis=1), np.square(after).sum(axis=1)
