"""The best split of a tree node, over its columns. Compiled into the kernel that grows trees."""

import numpy as np

from app.ml.numerics.jit import inner, seldom
from app.ml.numerics.sampling.compiled.draws import below
from app.ml.numerics.trees.compiled.column_split import (
    NEWTON,
    VARIANCE,
    add,
    best_cell,
    best_cut,
    best_subset,
    clear,
    name_lighter,
    quality,
    random_subset,
    weigh,
)

MAX_MARKED_ROWS = 128
"""Up to so many rows mark the cells they are counted in, so that empty ones are passed over."""
DE_BRUIJN = 0x03F79D71B4CB0A89
"""Its 64 runs of 6 bits differ: times a power of two, the top 6 bits identify it (Leiserson, Prokop & Randall 1998)."""
THRESHOLD, SUBSET, KNOWN = 0, 1, 2
"""Test of a split: `code <= cut`, whether the level is a member, whether the value is known."""
NOWHERE, LEFT, RIGHT, ASIDE = -1, 0, 1, 2
"""Branch of missing values: both, a side, one of their own."""
MIN_CURVATURE = 2 * float(np.finfo(np.float64).eps)
"""Curvature of a row, at least."""
BOTH, BRANCH, SIDE = 0, 1, 2
"""Branches that a column may send them to: both only, one of their own, the side where the gain is larger."""


@inner
def bend(slope):
    """The curvature of a logistic loss, from its slope p or p - 1."""
    return max(abs(slope) * (1 - abs(slope)), MIN_CURVATURE)


@inner
def entry(i, target, mean, pairs):
    """Terms of row i: weight and weighted distance from the mean; of two classes the weight of each; of more its
    weight, and its class.
    """
    y, weight, times, criterion = target
    share = weight[i] * times[i]
    if criterion == VARIANCE:
        return share, share * (y[i] - mean)
    if criterion == NEWTON:
        bent = share * bend(y[i])
        return bent, share * y[i] - bent * mean
    if not pairs:
        return share, y[i]
    return (0.0, share) if y[i] else (share, 0.0)


@inner
def tally(rows, code, near, held, seen):
    """Add the rows of a node, whose entries are `near` (m, 2), to the cells of their codes, in `held` (bins + 1, k):
    which are marked in the bits `seen`. Many rows leave no marks, as they leave few cells empty.
    """
    pairs, few = held.shape[1] == 2, rows.size <= MAX_MARKED_ROWS
    for p in range(rows.size):
        q = np.uintp(p)
        c = np.uintp(code[np.uintp(rows[q])])
        if pairs:
            first, second = near[q, 0], near[q, 1]
            first, second = held[c, 0] + first, held[c, 1] + second
            held[c, 0], held[c, 1] = first, second
        else:
            held[c, np.uintp(near[q, 1])] += near[q, 0]
        if few:
            seen[c >> np.uintp(6)] |= np.uint64(1) << np.uint64(c & np.uintp(63))


@seldom
def tally_far(rows, code, target, mean, held):
    """The same of so many rows that their entries were not brought together."""
    pairs = held.shape[1] == 2
    for p in range(rows.size):
        i = np.uintp(rows[np.uintp(p)])
        c = np.uintp(code[i])
        first, second = entry(i, target, mean, pairs)
        if pairs:
            held[c, 0] += first
            held[c, 1] += second
        else:
            held[c, np.uintp(second)] += first


@inner
def occupied(held, bins, few, seen, bit, cells):
    """The codes that occur, in order, into `cells`: how many. No mark is left in `seen`."""
    size = 0
    if few:
        for w in range((bins >> 6) + 1):
            bits = seen[w]
            seen[w] = 0
            while bits:
                cells[size] = w << 6 | bit[(bits & (~bits + np.uint64(1))) * np.uint64(DE_BRUIJN) >> np.uint64(58)]
                size += 1
                bits &= bits - np.uint64(1)
        return size
    for c in range(bins + 1):
        for s in range(held.shape[1]):
            if held[c, s] != 0:
                cells[size] = c
                size += 1
                break
    return size


@seldom
def tabled(code, place, y, weight, criterion, levels, table, seen):
    """Sums of each level into the rows of `table`, the levels that occur into `seen`; how many do."""
    for level in range(levels):
        for s in range(table.shape[1]):
            table[level, s] = 0.0
    for i in place:
        add(table[code[i]], i, y, weight, criterion)
    size = 0
    for level in range(levels):
        if weigh(table[level], criterion) > 0:
            seen[size] = level
            size += 1
    return size


@inner
def part_missing(gone, total, seen, any_, least, criterion, rule):
    """Sums of the rows with a value into `seen`; whether those without have a branch of their own, and the quality
    that a split starts from.
    """
    for s in range(total.size):
        seen[s] = total[s] - gone[s]
    branch = rule and any_ and weigh(gone, criterion) >= least
    return branch, quality(total, criterion) - quality(gone, criterion) if branch else quality(seen, criterion)


@inner
def best_levels(table, present, levels, seen, before, least, slack, options, left, right, share, pick, state):
    """The gain of the best subset of the levels `present`, whose sums are rows of `table`; `pick` marks its members."""
    criterion, lottery, _ = options
    for level in range(levels):
        pick[level] = False
    if lottery:
        best = random_subset(table, present, seen, before, least, criterion, left, right, pick, state)
    else:
        best = best_subset(table, present, seen, before, least, criterion, slack, left, right, pick, share)
    if best > -np.inf:
        name_lighter(table, present, criterion, pick)
    return best


@inner
def or_known(best, test, seen, before, branch, least, slack, criterion):
    """The better of a split and of the test whether the value is known."""
    if branch and weigh(seen, criterion) >= least:
        aside = quality(seen, criterion) - before
        if aside >= best - slack:
            return max(best, aside), KNOWN
    return best, test


@seldom
def sides_of_cells(held, cells, bins, levels, total, least, slack, options, sums, share, pick, state):
    """The same where missing values, the last of the cells, go to a side: as one more level, or above or below a cut.

    Below it they are where the cells are counted from the other end.
    """
    criterion, _, _ = options
    seen, _, left, right = sums
    before, m = quality(total, criterion), cells.size - 1
    if levels:
        best = best_levels(
            held, cells, levels + 1, total, before, least, slack, options, left, right, share, pick, state
        )
        return best, SUBSET, -1, -1, LEFT if pick[levels] else RIGHT
    best, last, following, toward = -np.inf, -1, -1, RIGHT
    for side in range(2):
        gain, here, there = best_cell(held, cells[:m], total, before, least, criterion, slack, left, right)
        if gain > best + slack:
            best, last, following, toward = gain, min(here, there), max(here, there), LEFT if side else RIGHT
        for t in range(m // 2):
            cells[t], cells[m - 1 - t] = cells[m - 1 - t], cells[t]
    for s in range(total.size):
        seen[s] = total[s] - held[bins, s]
    heavy, before = weigh(held[bins], criterion) >= least, before - quality(held[bins], criterion)
    best, test = or_known(best, THRESHOLD, seen, before, heavy, least, slack, criterion)
    return best, test, last, following, ASIDE if test == KNOWN else toward


@inner
def split_of_cells(held, cells, bins, levels, total, least, slack, options, sums, share, pick, state):
    """The best split by one column, from the sums in `held` of each of the codes `cells`, in order: gain, its test,
    codes beside the cut, and the branch of missing values. A constant column has none: (-inf, -1, …).
    """
    criterion, _, rule = options
    seen, _, left, right = sums
    m = cells.size
    if cells[m - 1] == bins:
        m -= 1
    if m == 0 or cells.size == 1:
        return -np.inf, -1, -1, -1, NOWHERE
    if rule == SIDE and m < cells.size:
        return sides_of_cells(held, cells, bins, levels, total, least, slack, options, sums, share, pick, state)
    branch, before = part_missing(held[bins], total, seen, m < cells.size, least, criterion, rule == BRANCH)
    last, following, test = -1, -1, SUBSET
    if levels:
        best = best_levels(
            held, cells[:m], levels, seen, before, least, slack, options, left, right, share, pick, state
        )
    else:
        best, last, following = best_cell(held, cells[:m], seen, before, least, criterion, slack, left, right)
        test = THRESHOLD if last >= 0 else -1
    best, test = or_known(best, test, seen, before, branch, least, slack, criterion)
    return best, test, last, following, ASIDE if branch else NOWHERE


@inner
def split_of_rows(code, place, bins, levels, target, total, least, slack, options, sums, levelled, pick, state):
    """The same of rows in order of code."""
    criterion, _, rule = options
    y, weight = target
    seen, gone, left, right = sums
    table, occurring, share = levelled
    m = place.size
    while m > 0 and code[place[m - 1]] == bins:
        m -= 1
    if m == 0 or (m == place.size and code[place[0]] == code[place[m - 1]]):
        return -np.inf, -1, -1, -1, NOWHERE
    clear(gone)
    for i in place[m:]:
        add(gone, i, y, weight, criterion)
    branch, before = part_missing(gone, total, seen, m < place.size, least, criterion, rule == BRANCH)
    last, following, test = -1, -1, SUBSET
    if levels:
        present = occurring[: tabled(code, place[:m], y, weight, criterion, levels, table, occurring)]
        best = best_levels(table, present, levels, seen, before, least, slack, options, left, right, share, pick, state)
    else:
        best, last, following = best_cut(code, place[:m], y, weight, seen, before, least, criterion, slack, left, right)
        test = THRESHOLD if last >= 0 else -1
    best, test = or_known(best, test, seen, before, branch, least, slack, criterion)
    return best, test, last, following, ASIDE if branch else NOWHERE


@inner
def search(
    rows,
    codes,
    bins,
    levels,
    order,
    lo,
    hi,
    target,
    y,
    mean,
    total,
    least,
    slack,
    options,
    tries,
    work,
    best_pick,
    state,
):
    """The best split of a node: gain, column, its test, codes beside the cut, branch of missing values.

    `tries`: columns drawn; constant ones do not count. If it is d, all are tried, and of a tie the first wins.
    The last of `options` (d,): of each column, where it may send missing values.
    """
    sums, levelled, pick, drawn, near, held, seen, bit, cells = work
    criterion, lottery, owns = options
    ranks = y, target[1]
    best, which, test, last, following, gap = -np.inf, -1, -1, -1, -1, NOWHERE
    d, tried = codes.shape[0], 0
    for q in range(d):
        if tried == tries:
            break
        if tries < d:
            swap = q + below(d - q, state)
            drawn[q], drawn[swap] = drawn[swap], drawn[q]
        j = drawn[q]
        how = criterion, lottery, owns[j]
        if order.shape[0] > 1:
            place = order[j, lo:hi]
            result = split_of_rows(
                codes[j], place, bins[j], levels[j], ranks, total, least, slack, how, sums, levelled, pick, state
            )
        else:
            if rows.size <= len(near):
                tally(rows, codes[j], near, held, seen)
            else:
                tally_far(rows, codes[j], target, mean, held)
            size = occupied(held, bins[j], rows.size <= MAX_MARKED_ROWS, seen, bit, cells)
            result = split_of_cells(
                held, cells[:size], bins[j], levels[j], total, least, slack, how, sums, levelled[2], pick, state
            )
            for t in range(size):
                clear(held[cells[t]])
        tried += result[0] > -np.inf
        if result[0] > best + slack:
            best, test, last, following, gap = result
            which = j
            if test == SUBSET:
                for level in range(levels[j]):
                    best_pick[level] = pick[level]
    return best, which, test, last, following, gap
