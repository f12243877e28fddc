"""The best question of every open node of a tree at once.

Items (rows, or whole categories) come sorted by node and then by the value that a question cuts; running sums over
them judge every cut without a loop. Categories are put in order of their mean target, where some cut is the best
subset for numbers and for two classes. For more classes all subsets of few categories are tried, and of many
categories the cuts of one order per class, by its share.

References: Breiman et al. (1984), CART, theorem 4.5; Quinlan (1993), C4.5, ch. 3 (gain over the known part).
"""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from app.ml.contract import Labels, Vector
from app.ml.numerics.impurity import Criterion, Sums

Flags = NDArray[np.bool_]

FEW_LEVELS = 10
"""Up to so many categories all 2^(levels-1) - 1 subsets are tried when there are more than two classes."""
TIE = 1e-11
"""Gains closer than this share of the node's impurity are equal: rounding must not choose."""
BLOCK = 2**20
"""Numbers held at a time while trying all subsets."""


class Level(NamedTuple):
    """The q open nodes of one level; the same for all columns."""

    total: Sums
    """(s, q) sums over the rows of each node."""
    rows: Labels
    """(q,) how many."""
    least: Vector
    """(q,) weight that each way must have."""
    criterion: Criterion

    @property
    def slack(self) -> Vector:
        return TIE * self.criterion.impurity(self.total)


class Questions(NamedTuple):
    """The best so far of q open nodes. Arrays are improved in place."""

    gain: Vector
    """(q,) decrease of impurity × weight; -inf where nothing can be asked."""
    column: Labels
    threshold: Vector
    """(q,) infinite to ask only whether the value is known; NaN to ask for a subset."""
    members: Flags
    """(q, most levels of a column) the subset that goes left."""
    branch: Flags
    """(q,) whether missing values have a way of their own."""

    @classmethod
    def none(cls, q: int, levels: int) -> Self:
        members = np.zeros((q, levels), np.bool_)
        return cls(np.full(q, -np.inf), np.full(q, -1), np.full(q, np.nan), members, np.zeros(q, np.bool_))


class Items(NamedTuple):
    """The m items of a column that have a value, rows or whole categories, sorted by node and then by value."""

    owner: Labels
    """(m,) open node of each."""
    values: Vector
    """(m,) numbers, category codes, or ranks of categories."""
    sums: Sums
    """(s, m) what each adds to the sums of its node."""


class Parted(NamedTuple):
    """What the missing values of a column make of the open nodes.

    They have a branch of their own if they weigh enough for one. Else they stop at the node, and the gain is that of
    the known rows.
    """

    known: Sums
    """(s, q) sums over the rows that have a value."""
    before: Vector
    """(q,) impurity that cutting the known rows takes away from."""
    aside: Vector
    """(q,) gain of asking only whether the value is known; -inf where that is no question."""
    branch: Flags


class Found(NamedTuple):
    """The best question about one column for each of q nodes."""

    gain: Vector
    threshold: Vector
    members: Flags | None = None
    """(q, levels)"""


def ask_threshold(best: Questions, column: int, items: Items, level: Level) -> None:
    """Improve `best` by a numeric column."""
    parted = _part(items, np.bincount(items.owner, minlength=len(level.rows)), level)
    gain, last = _scan(items, parted, level)
    cut = np.flatnonzero(last >= 0)
    low, high = items.values[last[cut]], items.values[last[cut] + 1]
    middle = low / 2 + high / 2
    threshold = np.zeros(len(last))
    threshold[cut] = np.where((low <= middle) & (middle < high), middle, low)
    _improve(best, column, Found(gain, threshold), parted, level)


def ask_subset(best: Questions, column: int, items: Items, levels: int, level: Level) -> None:
    """Improve `best` by a column of categories, whose codes are below `levels`."""
    keys, group = np.unique(items.owner * levels + items.values.astype(np.intp), return_inverse=True)
    owner, code = np.divmod(keys, levels)
    categories = Items(owner, code.astype(np.float64), _by(group, items.sums, len(keys)))
    parted = _part(categories, np.bincount(items.owner, minlength=len(level.rows)), level)
    several = len(level.criterion.orders(categories.sums)) > 1
    search = _all_subsets if several and levels <= FEW_LEVELS else _ordered_subsets
    gain, chosen = search(categories, levels, parted, level)
    named = _lighter(chosen, categories, level.criterion.weight(categories.sums))
    _improve(best, column, Found(gain, np.full(len(gain), np.nan), named), parted, level)


def _part(items: Items, known_rows: Labels, level: Level) -> Parted:
    impurity, weight = level.criterion.impurity, level.criterion.weight
    known = _by(items.owner, items.sums, len(level.rows))
    missing = np.where(level.rows > known_rows, level.total - known, 0.0)
    branch = (level.rows > known_rows) & (weight(missing) >= level.least)
    before = np.where(branch, impurity(level.total) - impurity(missing), impurity(known))
    aside = np.where(branch & (weight(known) >= level.least), before - impurity(known), -np.inf)
    return Parted(known, before, aside, branch)


def _scan(items: Items, parted: Parted, level: Level) -> tuple[Vector, Labels]:
    """The best cut of each node: its gain (q,), and the last item on its left side (-1 if there is no cut)."""
    q = len(level.rows)
    gain, last = np.full(q, -np.inf), np.full(q, -1)
    node, values = items.owner, items.values
    cuts = np.flatnonzero((node[1:] == node[:-1]) & (values[1:] > values[:-1]))
    if not cuts.size:
        return gain, last
    owner, running = node[cuts], np.cumsum(items.sums, axis=1)
    first = np.searchsorted(node, np.arange(q))
    base = np.where(first > 0, running[:, first - 1], 0.0)
    left = running[:, cuts] - base[:, owner]
    gains = _gains(left, parted.known[:, owner], parted.before[owner], level.least[owner], level.criterion)
    begins = np.flatnonzero(np.append(True, owner[1:] != owner[:-1]))
    gain[owner[begins]] = np.maximum.reduceat(gains, begins)
    near = np.flatnonzero(gains >= (gain - level.slack)[owner])
    who, leading = np.unique(owner[near], return_index=True)
    last[who] = cuts[near[leading]]
    return gain, last


def _gains(left: Sums, known: Sums, before: Vector, least: Vector, criterion: Criterion) -> Vector:
    """Of cuts with these sums (s, …) on their left; -inf where a side weighs too little."""
    right = known - left
    gains = before - (criterion.impurity(left) + criterion.impurity(right))
    heavy = (criterion.weight(left) >= least) & (criterion.weight(right) >= least)
    return np.where(heavy, gains, -np.inf)


def _ordered_subsets(categories: Items, levels: int, parted: Parted, level: Level) -> tuple[Vector, Flags]:
    owner, code, sums = categories
    gain, chosen = np.full(len(level.rows), -np.inf), np.zeros((len(level.rows), levels), np.bool_)
    rank = np.arange(len(owner), dtype=np.float64)
    for score in level.criterion.orders(sums):
        order = np.lexsort((code, score, owner))
        found, last = _scan(Items(owner[order], rank, sums[:, order]), parted, level)
        better = found > gain + level.slack
        gain[better], chosen[better] = found[better], False
        inside = order[better[owner[order]] & (rank <= last[owner[order]])]
        chosen[owner[inside], code[inside].astype(np.intp)] = True
    return gain, chosen


def _all_subsets(categories: Items, levels: int, parted: Parted, level: Level) -> tuple[Vector, Flags]:
    s, q = level.total.shape
    gain, chosen = np.full(q, -np.inf), np.zeros((q, levels), np.bool_)
    subsets = np.arange(1, 2 ** (levels - 1))[:, None] >> np.arange(levels) & 1  # without the last: half of all
    table = np.zeros((s, q, levels))
    table[:, categories.owner, categories.values.astype(np.intp)] = categories.sums
    step = max(1, BLOCK // (s * max(1, len(subsets))))
    for start in range(0, q if len(subsets) else 0, step):
        part = slice(start, start + step)
        left = table[:, part] @ subsets.T.astype(np.float64)
        parts = parted.known[:, part, None], parted.before[part, None], level.least[part, None]
        gains = _gains(left, *parts, level.criterion)
        gain[part] = gains.max(axis=1)
        chosen[part] = subsets[(gains >= (gain - level.slack)[part, None]).argmax(axis=1)]
    return gain, chosen


def _lighter(chosen: Flags, categories: Items, weight: Vector) -> Flags:
    """Name the side that weighs less, or of two equal ones that of the lowest category.

    A category that the node has never seen is not named, and so goes with most.
    """
    owner, code = categories.owner, categories.values.astype(np.intp)
    inside = chosen[owner, code]
    lead = np.bincount(owner, np.where(inside, weight, -weight), len(chosen))
    lowest = np.zeros(len(chosen), np.bool_)
    lowest[owner[::-1]] = inside[::-1]  # the first of each node is written last
    swap = (lead > 0) | ((lead == 0) & ~lowest)
    named = np.zeros_like(chosen)
    named[owner, code] = inside != swap[owner]
    return named


def _improve(best: Questions, column: int, found: Found, parted: Parted, level: Level) -> None:
    """Take this column where it is clearly better: on a tie the lowest column stays."""
    alone = parted.aside >= found.gain - level.slack
    gain = np.maximum(found.gain, parted.aside)
    better = np.flatnonzero(gain > best.gain + level.slack)
    best.gain[better], best.column[better], best.branch[better] = gain[better], column, parted.branch[better]
    best.threshold[better] = np.where(alone, np.inf, found.threshold)[better]
    best.members[better] = False
    if found.members is not None:
        best.members[better, : found.members.shape[1]] = found.members[better]


def _by(group: Labels, sums: Sums, size: int) -> Sums:
    """Sums (s, size) of items (s, m) by group (m,)."""
    return np.stack([np.bincount(group, kind, size) for kind in sums]).astype(np.float64)
