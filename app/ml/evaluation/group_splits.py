"""Splits by group: all rows of a group are on the same side, so that no test row has a relative to learn from.

Groups are dealt greedily, so that every side has its share of the rows and of each class as nearly as whole groups
allow: each group goes where, class by class, the least of the share is taken up. The group's own size plays no part in
that: test rows that are mostly of small groups would not stand for the others. (n,) group codes are 0 … G-1.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels, Vector
from app.ml.preparation.row_hashes import row_hashes
from app.ml.preparation.target import present

Rows: TypeAlias = Sequence[Labels]
"""The rows of each group."""
EXCESS = 1.5
"""A group is not held out if that would make this many times the rows that should be."""


def read_groups(table: pa.Table, name: str, rows: Labels) -> Labels:
    """(m,) group codes of these rows by the values of a column; a row without a value is a group of its own."""
    cells = table.select([name]).take(pa.array(rows))
    hashes, missing = row_hashes(cells, [name], None), ~present(cells.column(name))
    codes: Labels = np.unique(hashes, return_inverse=True)[1]
    codes[missing] = codes.size + np.arange(missing.sum())
    return np.unique(codes, return_inverse=True)[1]


def among(groups: Labels | None, rows: Labels) -> Labels | None:
    """Group codes of some of the rows alone, again 0 … G-1."""
    return None if groups is None else np.unique(groups[rows], return_inverse=True)[1]


def members(groups: Labels) -> Rows:
    """The rows of each group, ascending."""
    return np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1])


def held_out(
    groups: Labels, fraction: float, rng: np.random.Generator, codes: Labels | None = None
) -> NDArray[np.bool_]:
    """(n,) whether a row is held out: about this fraction of the rows, by whole groups.

    Each class keeps at least one training row. At least one group is held out wherever that is possible and the
    fraction is above 0.
    """
    rows, order = members(groups), rng.permutation(groups.max() + 1)
    held = np.zeros(len(rows), np.bool_)
    if fraction > 0:
        counts = _Counts.of(codes, groups.size)
        most = EXCESS * fraction * groups.size
        held = _dealt(rows, order, counts, np.array([1 - fraction, fraction]), most) == 1
        spare = [group for group in order.tolist() if counts.leaves_some(rows[group])]
        if not held.any() and spare:
            held[min(spare, key=lambda group: rows[group].size)] = True
    return held[groups]


def dealt(groups: Labels, folds: int, rng: np.random.Generator, codes: Labels | None = None) -> Labels:
    """(n,) the fold of each row: the largest groups are dealt first, equal ones in random order."""
    rows, order = members(groups), rng.permutation(groups.max() + 1)
    order = order[np.argsort(-np.bincount(groups)[order], kind="stable")]
    return _dealt(rows, order, _Counts.of(codes, groups.size), np.full(folds, 1 / folds))[groups]


def drawn(groups: Labels, rng: np.random.Generator) -> tuple[Labels, Labels]:
    """The rows of as many groups as there are, drawn with replacement, ascending; and those of groups never drawn."""
    rows = members(groups)
    chosen = rng.integers(0, len(rows), len(rows))
    unseen = np.isin(groups, chosen, invert=True)
    return np.sort(np.concatenate([rows[group] for group in chosen.tolist()])), np.flatnonzero(unseen)


class _Counts:
    """Rows of each class, and in all."""

    def __init__(self, codes: Labels) -> None:
        self._codes = codes
        self._classes = int(codes.max()) + 1
        self.totals = self(np.arange(codes.size))

    @classmethod
    def of(cls, codes: Labels | None, rows: int) -> "_Counts":
        return cls(np.zeros(rows, np.intp) if codes is None else codes)

    def __call__(self, rows: Labels) -> Vector:
        """(classes + 1,) among these rows."""
        return np.append(np.bincount(self._codes[rows], minlength=self._classes), rows.size).astype(np.float64)

    def leaves_some(self, rows: Labels, taken: Vector | float = 0.0) -> bool:
        """True if others than these and those taken before are left of all classes that are among these."""
        in_group = self(rows)
        return bool((in_group + taken < self.totals)[in_group > 0].all())


def _dealt(rows: Rows, order: Labels, counts: _Counts, shares: Vector, most: float | None = None) -> Labels:
    """(G,) the side of each group, of two or more sides with these shares.

    most: side 1 takes no more rows than this, and leaves some of each class to side 0.
    """
    weights = 1 / (shares[:, None] * np.maximum(counts.totals, 1.0) ** 2)
    taken, sides = np.zeros(weights.shape), np.empty(len(rows), np.intp)
    for group in order.tolist():
        in_group = counts(rows[group])
        cost = (taken * weights) @ in_group
        if most is not None and (taken[1, -1] + in_group[-1] > most or not counts.leaves_some(rows[group], taken[1])):
            cost[1] = np.inf
        sides[group] = place = int(cost.argmin())
        taken[place] += in_group
    return sides
