"""Rows divided in place among the branches of a split, as many at a time as the spare array holds."""

import numpy as np

from app.ml.numerics.jit import inner, not_inlined
from app.ml.numerics.trees.compiled.node_split import ASIDE, SUBSET, THRESHOLD


@inner
def branch_of(c, split):
    """Branch of a row of code c: 0 left, 1 right, 2 neither. Without a split the code is the branch."""
    if split is None:
        return c
    bins, gap, test, last, members = split
    if c == bins:
        return gap if gap >= 0 else ASIDE
    if test == THRESHOLD:
        return np.int64(c > last)
    if test == SUBSET:
        return np.int64(not members[c])
    return np.int64(0)


@inner
def mark(rows, code, split, side):
    """The branch of each row into `side` (n,), by which other columns' rows are divided."""
    for i in rows:
        side[i] = branch_of(np.int64(code[i]), split)


@inner
def exchange(rows, kept_rows, first, stay, spare):
    """So many rows from `first` on change places with all from `kept_rows` on before them: where these begin now."""
    size = np.uintp(stay)
    if kept_rows < first:
        for p in range(size):
            spare[np.uintp(p)] = rows[np.uintp(first) + np.uintp(p)]
        for p in range(np.uintp(first), np.uintp(kept_rows), -1):
            rows[np.uintp(p) - np.uintp(1) + size] = rows[np.uintp(p) - np.uintp(1)]
        for p in range(size):
            rows[np.uintp(kept_rows) + np.uintp(p)] = spare[np.uintp(p)]
    return kept_rows + stay


@inner
def part(rows, code, split, least, spare):
    """Bring the rows of branches before `least` to the front, stably: how many; and the last branch of any row."""
    kept_rows, first, farthest = 0, 0, np.int64(0)
    while first < rows.size:
        some = rows[first : first + spare.size]
        stay, moved = np.uintp(0), np.uintp(0)
        for p in range(some.size):
            i = some[np.uintp(p)]
            goes = branch_of(np.int64(code[np.uintp(i)]), split)
            farthest = max(farthest, goes)
            beyond = np.uintp(goes >= least)
            spare[moved] = i
            some[stay] = i
            moved += beyond
            stay += np.uintp(1) - beyond
        for p in range(moved):
            some[stay + np.uintp(p)] = spare[np.uintp(p)]
        kept_rows = exchange(rows, kept_rows, first, np.int64(stay), spare)
        first += spare.size
    return kept_rows, farthest


@not_inlined
def deal(order, lo, hi, code, split, spare, sizes):
    """Bring the rows lo … hi of each of `order` that go left to the front, then those that go right, then the others,
    stably; the number of rows of each branch into `sizes`.
    """
    for r in range(order.shape[0]):
        rows = order[r, lo:hi]
        left, farthest = part(rows, code, split, 1, spare)
        others = rows[left:]
        right = part(others, code, split, 2, spare)[0] if farthest > 1 else others.size
        sizes[0], sizes[1], sizes[2] = left, right, others.size - right
